#include "secret/sealed.h"

#include <openssl/evp.h>

#include <array>
#include <memory>

#include "base/bytes.h"
#include "base/random.h"
#include "secret/hex.h"
#include "secret/key_file.h"

namespace lokadb::secret {

namespace {

constexpr std::size_t kNonceSize = 12;
constexpr std::size_t kTagSize = 16;

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)>;

const unsigned char* bytes_of(std::string_view s) { return reinterpret_cast<const unsigned char*>(s.data()); }
int size_of(std::string_view s) { return static_cast<int>(s.size()); }

}  // namespace

std::string purpose_of_login(std::string_view org, std::string_view kind, std::string_view user) {
  std::string purpose = "lokadb";
  for (std::string_view part : {org, kind, user}) purpose.append("\n").append(part);
  return purpose;
}

Result<std::string> seal(std::string_view key, std::string_view text, std::string_view purpose) {
  Cipher cipher(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  std::array<std::byte, kNonceSize> random;
  random_bytes(random);
  std::string nonce(as_text(random)), out(text.size(), '\0'), tag(kTagSize, '\0');
  auto* to = reinterpret_cast<unsigned char*>(out.data());
  int n = 0;
  bool ok = key.size() == kKeySize &&
            EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes_of(key), bytes_of(nonce)) == 1 &&
            EVP_EncryptUpdate(cipher.get(), nullptr, &n, bytes_of(purpose), size_of(purpose)) == 1 &&
            EVP_EncryptUpdate(cipher.get(), to, &n, bytes_of(text), size_of(text)) == 1 &&
            EVP_EncryptFinal_ex(cipher.get(), to + n, &n) == 1 &&
            EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagSize, tag.data()) == 1;
  if (!ok) return Error{SqlState("XX000"), Severity::Error, "encryption failed", {}};
  return to_hex(nonce + tag + out);
}

Result<std::string> unseal(std::string_view key, std::string_view sealed, std::string_view purpose) {
  const Error wrong{SqlState("XX001"),
                    Severity::Error,
                    "the credentials cannot be read: another key file, or not what was stored",
                    {}};
  if (sealed.starts_with("\\x")) sealed.remove_prefix(2);
  auto all = from_hex(sealed);
  if (!all || all->size() < kNonceSize + kTagSize || key.size() != kKeySize) return wrong;
  std::string nonce = all->substr(0, kNonceSize), tag = all->substr(kNonceSize, kTagSize);
  std::string text = all->substr(kNonceSize + kTagSize), out(text.size(), '\0');
  auto* to = reinterpret_cast<unsigned char*>(out.data());
  Cipher cipher(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int n = 0;
  bool ok = EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes_of(key), bytes_of(nonce)) == 1 &&
            EVP_DecryptUpdate(cipher.get(), nullptr, &n, bytes_of(purpose), size_of(purpose)) == 1 &&
            EVP_DecryptUpdate(cipher.get(), to, &n, bytes_of(text), size_of(text)) == 1 &&
            EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagSize, tag.data()) == 1 &&
            EVP_DecryptFinal_ex(cipher.get(), to + n, &n) == 1;
  if (!ok) return wrong;
  return out;
}

}  // namespace lokadb::secret
