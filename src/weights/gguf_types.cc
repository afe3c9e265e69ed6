#include "weights/gguf_types.h"

namespace tq {
namespace {

constexpr GgufTensorType kTypes[] = {
    {0, "F32", 1, 4, CodecId::kF32},         {1, "F16", 1, 2, CodecId::kF16},
    {30, "BF16", 1, 2, CodecId::kBf16},      {24, "I8", 1, 1, std::nullopt},
    {25, "I16", 1, 2, std::nullopt},         {26, "I32", 1, 4, std::nullopt},
    {27, "I64", 1, 8, std::nullopt},         {28, "F64", 1, 8, std::nullopt},
    {2, "Q4_0", 32, 18, CodecId::kQ4_0},     {3, "Q4_1", 32, 20, CodecId::kQ4_1},
    {6, "Q5_0", 32, 22, CodecId::kQ5_0},     {7, "Q5_1", 32, 24, CodecId::kQ5_1},
    {8, "Q8_0", 32, 34, CodecId::kQ8_0},     {10, "Q2_K", 256, 84, CodecId::kQ2K},
    {11, "Q3_K", 256, 110, CodecId::kQ3K},   {12, "Q4_K", 256, 144, CodecId::kQ4K},
    {13, "Q5_K", 256, 176, CodecId::kQ5K},   {14, "Q6_K", 256, 210, CodecId::kQ6K},
    {20, "IQ4_NL", 32, 18, CodecId::kIq4Nl}, {23, "IQ4_XS", 256, 136, CodecId::kIq4Xs},
    {34, "TQ1_0", 256, 54, CodecId::kTq1_0}, {35, "TQ2_0", 256, 66, CodecId::kTq2_0},
    {39, "MXFP4", 32, 17, CodecId::kMxfp4},  {40, "NVFP4", 64, 36, CodecId::kNvfp4},
    {41, "Q1_0", 128, 18, CodecId::kQ1_0},   {42, "Q2_0", 64, 18, CodecId::kQ2_0},
    {16, "IQ2_XXS", 256, 66, std::nullopt},  {17, "IQ2_XS", 256, 74, std::nullopt},
    {18, "IQ3_XXS", 256, 98, std::nullopt},  {19, "IQ1_S", 256, 50, std::nullopt},
    {21, "IQ3_S", 256, 110, std::nullopt},   {22, "IQ2_S", 256, 82, std::nullopt},
    {29, "IQ1_M", 256, 56, std::nullopt},
};

}  // namespace

const GgufTensorType* FindGgufTensorType(uint32_t id) {
  for (const GgufTensorType& type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

}  // namespace tq
