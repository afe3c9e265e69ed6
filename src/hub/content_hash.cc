#include "hub/content_hash.h"

#include <memory>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/file.h"

namespace tq {

Result<std::string> HashFile(const std::string& path, ContentHash kind) {
  TQ_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const std::span<const std::byte> bytes = file->bytes();
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  const EVP_MD* digest = kind == ContentHash::kSha256 ? EVP_sha256() : EVP_sha1();
  bool ok = context != nullptr && EVP_DigestInit_ex(context.get(), digest, nullptr) == 1;
  if (kind == ContentHash::kGitBlob) {
    const std::string header = fmt::format("blob {}", bytes.size());
    ok = ok && EVP_DigestUpdate(context.get(), header.c_str(), header.size() + 1) == 1;
  }
  constexpr size_t kPiece = size_t{16} << 20;
  for (size_t at = 0; ok && at < bytes.size(); at += kPiece) {
    const std::span<const std::byte> piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
    ok = EVP_DigestUpdate(context.get(), piece.data(), piece.size()) == 1;
    file->DropPages(piece);
  }
  unsigned char value[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (!ok || EVP_DigestFinal_ex(context.get(), value, &size) != 1) {
    return Internal("the hash could not be computed");
  }
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", value[i]);
  return text;
}

}  // namespace tq
