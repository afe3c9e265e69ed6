// RequestNode: a value inside a request together with its path, for errors such as
// `messages[3].content[1].type: expected "text" or "image_url", found "video"`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/status.h"

namespace tq {

class RequestNode {
 public:
  // path may be empty for the request itself.
  RequestNode(const OrderedJson& value, std::string path)
      : value_(&value), path_(std::move(path)) {}

  const OrderedJson& value() const { return *value_; }
  const std::string& path() const { return path_; }
  bool IsNull() const { return value_->is_null(); }  // also: missing
  bool IsText() const { return value_->is_string(); }
  bool IsList() const { return value_->is_array(); }
  bool IsObject() const { return value_->is_object(); }
  const std::string& text() const { return value_->get_ref<const std::string&>(); }  // IsText()

  // A member of an object; null when it is missing or this is no object.
  RequestNode operator[](std::string_view key) const;
  // Elements of a list; none when it is null. Errors: something else.
  Result<std::vector<RequestNode>> List() const;
  // The text. Errors: missing or something else.
  Result<std::string> Text() const;
  // The text, "" when it is null or missing. Errors: something else.
  Result<std::string> OptionalText() const;
  Status CheckObject() const;
  bool IsTrue() const { return value_->is_boolean() && value_->get<bool>(); }

  // "path: expected `what`, found ...".
  Status Expected(std::string_view what) const;

 private:
  const OrderedJson* value_;
  std::string path_;
};

}  // namespace tq
