#include "proto/crypto.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <memory>

#include "base/log.h"
#include "base/random.h"

namespace lokadb {

namespace {

template <auto Fn>
struct Calls {
  template <class T>
  void operator()(T* p) const noexcept {
    Fn(p);
  }
};
using DigestContext = std::unique_ptr<EVP_MD_CTX, Calls<EVP_MD_CTX_free>>;
using MacContext = std::unique_ptr<EVP_MAC_CTX, Calls<EVP_MAC_CTX_free>>;

const unsigned char* raw(const void* p) { return static_cast<const unsigned char*>(p); }

void require(bool success, const char* what) {
  if (!success) log_fatal("OpenSSL: %s failed", what);
}

// The fetched algorithms are never freed: a thread may still log somebody in while the process exits.
const EVP_MD* sha256_algorithm() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  require(algorithm, "fetching SHA-256");
  return algorithm;
}

// HMAC with its digest chosen and no key yet: copied for each use, since choosing the digest costs more than a MAC.
const EVP_MAC_CTX* hmac_template() {
  static const EVP_MAC_CTX* const prepared = [] {
    EVP_MAC* mac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
    EVP_MAC_CTX* context = mac ? EVP_MAC_CTX_new(mac) : nullptr;
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                           OSSL_PARAM_construct_end()};
    require(context && EVP_MAC_CTX_set_params(context, params), "preparing HMAC-SHA-256");
    return context;
  }();
  return prepared;
}

std::string hex(const unsigned char* data, std::size_t size) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += kDigits[data[i] >> 4];
    text += kDigits[data[i] & 15];
  }
  return text;
}

// Value of a base64 digit; -1: not one.
int digit_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

Sha256 sha256(Bytes data) {
  Sha256 out;
  DigestContext context(EVP_MD_CTX_new());
  require(context && EVP_DigestInit_ex2(context.get(), sha256_algorithm(), nullptr) &&
              EVP_DigestUpdate(context.get(), data.data(), data.size()) &&
              EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(out.data()), nullptr),
          "SHA-256");
  return out;
}

Sha256 hmac_sha256(Bytes key, std::string_view text) {
  Sha256 out;
  std::size_t size = 0;
  MacContext context(EVP_MAC_CTX_dup(hmac_template()));
  require(context && EVP_MAC_init(context.get(), raw(key.data()), key.size(), nullptr) &&
              EVP_MAC_update(context.get(), raw(text.data()), text.size()) &&
              EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size, out.size()) &&
              size == out.size(),
          "HMAC-SHA-256");
  return out;
}

Sha256 pbkdf2_sha256(std::string_view password, std::string_view salt, std::uint32_t iterations) {
  Sha256 out;
  require(PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()), raw(salt.data()),
                            static_cast<int>(salt.size()), static_cast<int>(iterations), sha256_algorithm(),
                            static_cast<int>(out.size()), reinterpret_cast<unsigned char*>(out.data())),
          "PBKDF2");
  return out;
}

std::string md5_hex(std::string_view data) {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "MD5", nullptr);
  unsigned char out[16];
  DigestContext context(EVP_MD_CTX_new());
  if (!algorithm || !context || !EVP_DigestInit_ex2(context.get(), algorithm, nullptr) ||
      !EVP_DigestUpdate(context.get(), data.data(), data.size()) || !EVP_DigestFinal_ex(context.get(), out, nullptr)) {
    log_line(LogLevel::Error, "OpenSSL offers no MD5, so MD5 logins fail");
    random_bytes(std::as_writable_bytes(std::span(out)));
  }
  return hex(out, sizeof(out));
}

std::string base64_encode(Bytes data) {
  std::string text((data.size() + 2) / 3 * 4 + 1, '\0');  // the encoder adds a zero byte
  int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), raw(data.data()), static_cast<int>(data.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

// Not OpenSSL's decoder: that one skips white space around the text and counts padding as zero bytes.
std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
  for (char c : text) {
    int value = digit_value(c);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>(bits >> held & 0xff);
  }
  if ((bits & ((1u << held) - 1)) != 0) return std::nullopt;
  return out;
}

bool equal_in_constant_time(Bytes a, Bytes b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace lokadb
