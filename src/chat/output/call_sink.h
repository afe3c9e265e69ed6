// CallSink: the events of calls that were read, until it is certain that they are calls.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/output/output_parser.h"

namespace tq {

class CallSink {
 public:
  // streams: a call that is certain is given out before it ends.
  void SetStreams(bool streams) { streams_ = streams; }

  void Begin(std::string name, std::string id) {
    pending_.push_back({OutputEvent::Kind::kToolBegin, -1, std::move(name), std::move(id)});
    is_open_ = true;
    open_is_certain_ = false;
  }
  void Arguments(std::string_view json) {
    if (pending_.empty() || pending_.back().kind != OutputEvent::Kind::kToolArguments) {
      pending_.push_back({OutputEvent::Kind::kToolArguments, -1, {}, {}});
    }
    pending_.back().text += json;
    if (open_is_certain_) ReleaseAll();
  }
  // The open call is one.
  void Certain() {
    if (!streams_ || open_is_certain_) return;
    open_is_certain_ = true;
    ReleaseAll();
  }
  void End(bool complete) {
    pending_.push_back({OutputEvent::Kind::kToolEnd, -1, {}, {}, complete});
    is_open_ = false;
    open_is_certain_ = false;
    if (streams_) ReleaseAll();
  }
  // All that was read are calls, or none of it.
  void ReleaseAll() { released_ = pending_.size(); }
  void Drop() {
    pending_.clear();
    released_ = 0;
    is_open_ = false;
    open_is_certain_ = false;
  }

  bool is_open() const { return is_open_; }
  bool open_is_certain() const { return open_is_certain_; }
  bool has_released() const { return released_ > 0; }
  bool has_pending() const { return !pending_.empty(); }

  // Moves out what is certain.
  std::vector<OutputEvent> TakeReleased() {
    std::vector<OutputEvent> events;
    if (released_ == pending_.size()) {
      events.swap(pending_);
    } else {
      const auto end = pending_.begin() + static_cast<ptrdiff_t>(released_);
      events.assign(std::make_move_iterator(pending_.begin()), std::make_move_iterator(end));
      pending_.erase(pending_.begin(), end);
    }
    released_ = 0;
    for (OutputEvent& event : events) {
      if (event.kind == OutputEvent::Kind::kToolBegin) ++num_calls_;
      event.tool_index = num_calls_ - 1;
    }
    return events;
  }
  int num_calls() const { return num_calls_; }

 private:
  std::vector<OutputEvent> pending_;
  size_t released_ = 0;
  int num_calls_ = 0;
  bool streams_ = true;
  bool is_open_ = false;
  bool open_is_certain_ = false;
};

}  // namespace tq
