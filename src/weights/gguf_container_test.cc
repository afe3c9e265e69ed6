#include "weights/gguf_container.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "weights/source.h"

namespace tq {
namespace {

const std::string kFolder = TQ_TEST_DATA "/gguf/";

Json ReadJson(const std::string& path) {
  const auto text = ReadTextFile(path);
  EXPECT_TRUE(text.ok()) << text.status().message();
  const auto json = ParseJson(*text, path);
  EXPECT_TRUE(json.ok()) << json.status().message();
  return *json;
}

// A value in the spelling of the fixtures: 64-bit integers as text, bytes that are no UTF-8 as hex.
Json ItemAsJson(const GgufValue& value, uint64_t i) {
  switch (value.type) {
    case GgufType::kString: {
      if (IsUtf8(value.strings[i])) return std::string(value.strings[i]);
      std::string hex;
      for (const char c : value.strings[i]) {
        char digits[3];
        std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(c));
        hex += digits;
      }
      return {{"hex", hex}};
    }
    case GgufType::kBool:
      return value.BoolAt(i).value();
    case GgufType::kF32:
    case GgufType::kF64:
      return value.FloatAt(i).value();
    case GgufType::kU64:
      return std::to_string(value.UnsignedAt(i).value());
    case GgufType::kI64:
      return std::to_string(value.IntAt(i).value());
    default:
      return value.IntAt(i).value();
  }
}

std::string ItemType(const GgufValue& value) {
  GgufValue single;
  single.type = value.type;
  const std::string name = single.TypeName();
  return name == "string" ? "str" : name == "array" ? "arr" : name;
}

Json AsJson(const GgufValue& value) {
  if (!value.is_array) return ItemAsJson(value, 0);
  Json items = Json::array();
  for (const GgufValue& item : value.arrays) items.push_back(AsJson(item));
  for (uint64_t i = 0; value.type != GgufType::kArray && i < value.count; ++i) {
    items.push_back(ItemAsJson(value, i));
  }
  return {{"of", ItemType(value)}, {"items", items}};
}

TEST(GgufContainer, MetadataFilesReadAsListed) {
  int files = 0;
  const auto names = ListDirectory(kFolder + "metadata");
  ASSERT_TRUE(names.ok());
  for (const std::string& name : *names) {
    if (!name.ends_with(".json")) continue;
    const Json expected = ReadJson(kFolder + "metadata/" + name);
    const std::string path = kFolder + "metadata/" + name.substr(0, name.size() - 5) + ".gguf";
    const auto mapped = MappedFile::Open(path);
    ASSERT_TRUE(mapped.ok());
    const auto file = ParseGguf((*mapped)->bytes(), path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    ++files;
    EXPECT_EQ(file->version, expected["version"]);
    EXPECT_EQ(file->alignment, expected["alignment"]);
    const Json& keys = expected["kv"];
    for (const Json& item : keys) {
      const auto it = file->keys.find(item["key"].get<std::string>());
      ASSERT_NE(it, file->keys.end()) << item["key"];
      EXPECT_EQ(it->second.is_array ? "arr" : ItemType(it->second), item["type"].get<std::string>())
          << item["key"];
      EXPECT_EQ(AsJson(it->second), item["value"]) << item["key"];
    }
    EXPECT_EQ(file->keys.size() - file->keys.count("general.alignment"),
              keys.size() - std::count_if(keys.begin(), keys.end(), [](const Json& k) {
                return k["key"] == "general.alignment";
              }));
    const Json& tensors = expected["tensors"];
    ASSERT_EQ(file->tensors.size(), tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      const GgufTensorInfo& info = file->tensors[i];
      EXPECT_EQ(info.name, tensors[i]["name"].get<std::string>());
      Shape dims = tensors[i]["dims"].get<Shape>();
      std::reverse(dims.begin(), dims.end());
      EXPECT_EQ(info.shape, dims);
      EXPECT_EQ(info.type->name, tensors[i]["type"].get<std::string>());
      EXPECT_EQ(info.offset, tensors[i]["offset"]);
      EXPECT_EQ(info.bytes.size(), tensors[i]["bytes"]);
    }
  }
  EXPECT_EQ(files, 9);
}

// Every broken file is refused with a message that names what is wrong; at its own level.
TEST(GgufContainer, BadFilesAreRefusedByName) {
  const Json bad = ReadJson(kFolder + "bad/bad.json");
  EXPECT_EQ(bad.size(), 48u);
  for (const auto& [name, expected] : bad.items()) {
    const std::string path = kFolder + "bad/" + name;
    const auto source = OpenSource(path);
    if (expected["error"].is_null()) {
      EXPECT_TRUE(source.ok()) << source.status().message();
      continue;
    }
    ASSERT_FALSE(source.ok()) << name;
    const std::string message = source.status().message();
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    bool named = expected["names"].empty();
    for (const Json& part : expected["names"]) {
      named = named || message.find(part.get<std::string>()) != std::string::npos;
    }
    EXPECT_TRUE(named) << name << ": " << message;
    const auto mapped = MappedFile::Open(path);
    ASSERT_TRUE(mapped.ok());
    EXPECT_EQ(ParseGguf((*mapped)->bytes(), path).ok(), expected["level"] == "model") << name;
  }
}

TEST(GgufContainer, BigEndianIsSaid) {
  const auto source = OpenSource(kFolder + "bad/big_endian.gguf");
  ASSERT_FALSE(source.ok());
  EXPECT_NE(source.status().message().find("big-endian"), std::string::npos);
}

// Cut at any byte, a file is refused or, in the padding after the last tensor, read.
TEST(GgufContainer, EveryTruncationIsHandled) {
  const std::string path = kFolder + "metadata/kv_types.gguf";
  const auto mapped = MappedFile::Open(path);
  ASSERT_TRUE(mapped.ok());
  const auto whole = ParseGguf((*mapped)->bytes(), path);
  ASSERT_TRUE(whole.ok());
  const std::span<const std::byte> last = whole->tensors.back().bytes;
  const size_t needed = static_cast<size_t>(last.data() + last.size() - (*mapped)->bytes().data());
  for (size_t size = 0; size < (*mapped)->bytes().size(); size += 7) {
    EXPECT_EQ(ParseGguf((*mapped)->bytes().first(size), path).ok(), size >= needed) << size;
  }
}

TEST(GgufContainer, LyingCountsReserveNothing) {
  std::vector<std::byte> bytes(64);
  std::memcpy(bytes.data(), "GGUF\3\0\0\0", 8);
  for (const uint64_t count : {~uint64_t{0}, uint64_t{1} << 63, uint64_t{1} << 40, uint64_t{5}}) {
    for (const size_t at : {8u, 16u}) {
      std::vector<std::byte> copy = bytes;
      std::memcpy(copy.data() + at, &count, 8);
      EXPECT_FALSE(ParseGguf(copy, "m").ok());
    }
  }
}

}  // namespace
}  // namespace tq
