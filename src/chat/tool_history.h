// Calls and results of a history, put in order: clients send results late, twice, for calls that
// are gone, or not at all, and templates know only "result behind its call".
#pragma once

#include "chat/messages.h"

namespace tq {

// Afterwards every call has an id and, when anything but results follows it, exactly one result,
// and every result stands behind its assistant message in the order of the calls:
// - a call without id, or with that of another call of its message, gets one that is free; a result
//   without id answers the first open call of its name;
// - an assistant text between a call and its result is joined to the call's message;
// - a missing result becomes "(no result)";
// - a result of an unknown call becomes a user message.
// Adds a note for each of the last two.
void RepairToolHistory(ChatInput& input);

}  // namespace tq
