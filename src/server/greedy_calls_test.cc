// --tool-syntax-greedy, through the engine and through the server. The model's wish depends on the
// place alone, so every token is what the sampler made of the same logits.
#include "server/greedy_calls.h"

#include "server/server_for_test.h"

namespace tq::server {
namespace {

using tq::test::kFirstByteId;
using tq::test::ScriptModel;

constexpr std::string_view kCall =
    "Yes.<tool_call>\n{\"name\": \"shell\", \"arguments\": {\"command\": \"ls -l -a\", \"n\": "
    "12}}\n</tool_call> Done, all of it.";

// The syntax in an answer that begins like this.
bool IsSyntaxBehind(std::string_view text) {
  ToolSyntaxTracker tracker(ToolSyntax::kHermes);
  tracker.Feed(text);
  return tracker.next_is_syntax();
}

class GreedyCallsTest : public testing::Test {
 protected:
  GreedyCallsTest() {
    auto tokenizer = Tokenizer::Load(tq::test::ByteTokenizerJson(), "");
    EXPECT_TRUE(tokenizer.ok());
    tokenizer_ = std::move(tokenizer).value();
    auto engine = Engine::Create(
        std::make_unique<ScriptModel>(std::string(kCall), true, ScriptModel::StepHook(), 4096),
        {.max_sequences = 4});
    EXPECT_TRUE(engine.ok());
    engine_ = std::move(engine).value();
  }
  GenerateRequest Request(uint64_t seed, float temperature, bool greedy_calls) const {
    GenerateRequest request;
    request.prompt = {1, ScriptModel::kAssistant};
    request.max_tokens = static_cast<int64_t>(kCall.size());
    request.sampling.temperature = temperature;
    request.sampling.seed = seed;
    if (greedy_calls) {
      request.constraint =
          MakeGreedyCalls(nullptr, ToolSyntaxTracker(ToolSyntax::kHermes), *tokenizer_);
    }
    return request;
  }
  static std::string Read(TokenStream& stream) {
    std::string text;
    while (const auto id = stream.Next()) text += static_cast<char>(*id - kFirstByteId);
    return text;
  }
  std::string Say(const GenerateRequest& request) {
    auto stream = engine_->Submit(request);
    EXPECT_TRUE(stream.ok()) << stream.status().message();
    return Read(**stream);
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(GreedyCallsTest, SyntaxIsGreedyAndTheRestIsDrawnAsWithout) {
  int opened = 0;
  int mended = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const std::string plain = Say(Request(seed, 0.12f, false));
    const std::string greedy = Say(Request(seed, 0.12f, true));
    ASSERT_EQ(greedy.size(), plain.size());
    for (size_t i = 0; i < plain.size(); ++i) {
      const bool syntax = IsSyntaxBehind(greedy.substr(0, i));
      ASSERT_EQ(greedy[i], syntax ? kCall[i] : plain[i]) << seed << " at " << i << ": " << greedy;
      mended += static_cast<int>(syntax && plain[i] != kCall[i]);
    }
    opened += static_cast<int>(greedy.find("<tool_call>") != std::string::npos);
  }
  EXPECT_GT(opened, 10);
  EXPECT_GT(mended, 10);
}

TEST_F(GreedyCallsTest, AGreedyAnswerIsUnchanged) {
  EXPECT_EQ(Say(Request(1, 0, true)), kCall);
  EXPECT_EQ(Say(Request(1, 0, false)), kCall);
}

TEST_F(GreedyCallsTest, SeveralAtOnceAreAsAlone) {
  const GenerateRequest request = Request(5, 0.12f, true);
  std::vector<std::string> alone;
  for (int i = 0; i < 6; ++i) alone.push_back(Say(RequestOfAnswer(request, i)));
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < 6; ++i) streams.push_back(*engine_->Submit(RequestOfAnswer(request, i)));
  streams.push_back(*engine_->Submit(Request(9, 0.12f, true)));
  streams.back()->Cancel();
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(Read(*streams[i]), alone[i]);
}

// What may come is the constraint's; what was taken back does not count.
TEST_F(GreedyCallsTest, AroundAnotherConstraint) {
  class OnlyLetters final : public Constraint {
   public:
    void FillMask(std::span<uint32_t> bits) override { std::fill(bits.begin(), bits.end(), 5u); }
    void Accept(int32_t) override { ++count_; }
    bool IsTerminated() const override { return count_ == 4; }
    void Rollback(size_t num_tokens) override { count_ -= num_tokens; }
    std::unique_ptr<Constraint> Fork() const override {
      return std::make_unique<OnlyLetters>(*this);
    }

   private:
    size_t count_ = 0;
  };
  const auto constraint =
      MakeGreedyCalls(std::make_unique<OnlyLetters>(), ToolSyntaxTracker("<<", ">>"), *tokenizer_);
  std::vector<uint32_t> bits(1);
  constraint->FillMask(bits);
  EXPECT_EQ(bits[0], 5u);
  constraint->Accept('<' + kFirstByteId);
  EXPECT_FALSE(constraint->TakesBest());
  constraint->Accept('<' + kFirstByteId);
  EXPECT_TRUE(constraint->TakesBest());
  const auto fork = constraint->Fork();
  constraint->Rollback(1);
  EXPECT_FALSE(constraint->TakesBest());
  EXPECT_TRUE(fork->TakesBest());
  constraint->Accept('<' + kFirstByteId);
  EXPECT_TRUE(constraint->TakesBest());
  for (const char c : {'"', 'a'}) fork->Accept(c + kFirstByteId);
  EXPECT_FALSE(fork->TakesBest()) << "in a text";
  EXPECT_TRUE(fork->IsTerminated());
}

// Calls that arrive whole, of so many answers.
int WholeCalls(const TestServer& server, bool thinks) {
  int whole = 0;
  for (int seed = 0; seed < 40; ++seed) {
    const std::string fields =
        R"("temperature": 0.12, "max_tokens": 120, "tools": [{"type": "function", "function":
           {"name": "shell"}}], "seed": )" +
        std::to_string(seed) + (thinks ? R"(, "thinking_budget": 6)" : "");
    const Json message =
        server.Post("/v1/chat/completions", HiWith(fields)).json()["choices"][0]["message"];
    if (message.contains("tool_calls") && message["tool_calls"].size() == 1 &&
        message["tool_calls"][0]["function"]["name"] == "shell") {
      ++whole;
    }
  }
  return whole;
}

TEST(GreedyCalls, OfTheServer) {
  const std::string call =
      "<tool_call>{\"name\": \"shell\", \"arguments\": {\"n\": 123456789}}</tool_call>";
  const TestServer plain({.script = call});
  const TestServer greedy({.script = call, .service = {.greedy_calls = true}});
  const TestServer tagged(
      {.script = call,
       .service = {.greedy_calls = true, .greedy_tags = {"<tool_call>", "</tool_call>"}}});
  const int without = WholeCalls(plain, false);
  const int with = WholeCalls(greedy, false);
  EXPECT_GT(with, without + 5);
  EXPECT_EQ(WholeCalls(tagged, false), with);
  // The answer behind thoughts, too.
  const std::string thinks = "<think>hmm</think>" + call;
  const TestServer thinking({.script = thinks, .service = {.greedy_calls = true}});
  const TestServer thinking_plain({.script = thinks});
  EXPECT_GT(WholeCalls(thinking, true), WholeCalls(thinking_plain, true) + 2);
}

}  // namespace
}  // namespace tq::server
