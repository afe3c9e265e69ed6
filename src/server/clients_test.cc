// What public clients send (recorded, with their prose shortened), sent to the server.
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "server/server_for_test.h"

namespace tq::server {
namespace {

namespace fs = std::filesystem;
using tq::test::HttpReply;

std::string PathOf(const std::string& file, const Json& body) {
  if (file.find("count_tokens") != std::string::npos) return "/v1/messages/count_tokens?beta=true";
  if (body.contains("input")) return "/v1/responses";
  if (body.contains("prompt")) return "/v1/completions";
  return file.find("messages") != std::string::npos ? "/v1/messages?beta=true"
                                                    : "/v1/chat/completions";
}

std::string KindOf(const Json& format) {
  return format.is_object() ? format.value("type", "text") : "text";
}

Json Field(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) ? object[name] : Json();
}

bool HasImage(const Json& value) {
  if (value.is_object()) {
    const Json type = Field(value, "type");
    if (type == "image" || type == "image_url" || type == "input_image") return true;
  }
  return value.is_structured() && std::any_of(value.begin(), value.end(), HasImage);
}

// What is refused as long as it is not served.
bool IsRefused(const Json& body) {
  const Json choice = Field(body, "tool_choice");
  const std::string kind = choice.is_object()   ? choice.value("type", "auto")
                           : choice.is_string() ? choice.get<std::string>()
                                                : "auto";
  const bool formatted = KindOf(Field(body, "response_format")) != "text" ||
                         KindOf(Field(Field(body, "text"), "format")) != "text" ||
                         KindOf(Field(Field(body, "output_config"), "format")) != "text";
  // Recorded on purpose.
  const bool broken =
      !body.contains("input") && !body.contains("prompt") && !Field(body, "messages").is_array();
  const Json said = body.contains("input") ? body["input"] : Field(body, "messages");
  const bool forced = kind != "auto" && kind != "none";
  const Json tools = Field(body, "tools");
  const bool has_tools = tools.is_array() && !tools.empty();
  const bool unenforced = (forced || formatted) && !GrammarCompiler::Available();
  return broken || unenforced || (forced && !has_tools) || HasImage(said);
}

TEST(Clients, EveryRecordedRequestIsAnswered) {
  // Of calls that must come, a model that does not want them may make endless ones.
  TestServer server({.max_context = 1 << 16, .service = {.max_tokens = 500}});
  int answered = 0;
  for (const auto& entry : fs::recursive_directory_iterator(TQ_TEST_DATA "/clients")) {
    if (!entry.is_regular_file()) continue;
    const std::string file = entry.path().string();
    const auto text = ReadTextFile(file);
    ASSERT_TRUE(text.ok());
    const auto body = ParseJson(*text, file);
    ASSERT_TRUE(body.ok());
    const HttpReply reply = server.Post(PathOf(file, *body), *text, {"anthropic-beta: any"});
    EXPECT_EQ(reply.status, IsRefused(*body) ? 400 : 200) << file << ": " << reply.body;
    EXPECT_TRUE(reply.complete);
    if (reply.status == 200) ++answered;
    if (reply.status != 200 || !body->value("stream", false)) continue;
    // A stream without its end is asked for again and again.
    const auto events = tq::test::SseEvents(reply.body);
    const auto& [name, data] = events.back();
    EXPECT_TRUE(name == "message_stop" || name == "response.completed" ||
                name == "response.incomplete" || data == "[DONE]")
        << file << ": " << name;
  }
  EXPECT_GT(answered, 100);
}

}  // namespace
}  // namespace tq::server
