#include "net/tls_info.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <string_view>

#include "base/text.h"

namespace lokadb {
namespace {

std::string key_exchange(SSL* ssl) {
  int group = static_cast<int>(SSL_get_negotiated_group(ssl));
  const char* name = group != NID_undef ? SSL_group_to_name(ssl, group) : nullptr;
  if (name != nullptr) return std::string("/ECDH=") + name;
  EVP_PKEY* key = nullptr;
  if (SSL_get_peer_tmp_key(ssl, &key) != 1) return "";
  std::string out = EVP_PKEY_base_id(key) == EVP_PKEY_DH ? format("/DH=%d", EVP_PKEY_bits(key)) : "";
  EVP_PKEY_free(key);
  return out;
}

void add_name(std::vector<std::string>& names, const ASN1_STRING* from) {
  unsigned char* utf8 = nullptr;
  int length = ASN1_STRING_to_UTF8(&utf8, from);
  if (length < 0) return;
  std::string name(reinterpret_cast<char*>(utf8), static_cast<std::size_t>(length));
  OPENSSL_free(utf8);
  if (name.find('\0') == std::string::npos) names.push_back(std::move(name));
}

void add_common_names(std::vector<std::string>& names, const X509* certificate) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;)
    add_name(names, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

void add_dns_names(std::vector<std::string>& names, const X509* certificate) {
  auto* all = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {  // -1 for a missing list
    const GENERAL_NAME* one = sk_GENERAL_NAME_value(all, i);
    if (one->type == GEN_DNS) add_name(names, one->d.dNSName);
  }
  GENERAL_NAMES_free(all);
}

}  // namespace

std::string describe(SSL* ssl) {
  if (SSL_is_init_finished(ssl) == 0) return "";
  return std::string(SSL_get_version(ssl)) + "/" + SSL_get_cipher_name(ssl) + key_exchange(ssl);
}

std::string last_error_text(const SSL* ssl) {
  unsigned long code = ERR_get_error();
  if (code == 0) return "connection closed";
  char text[256];
  ERR_error_string_n(code, text, sizeof(text));
  ERR_clear_error();
  std::string out = text;
  bool is_verify = ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED;
  if (is_verify && ssl != nullptr)
    out.append(" (").append(X509_verify_cert_error_string(SSL_get_verify_result(ssl))).append(")");
  return out;
}

std::optional<std::vector<std::string>> peer_certificate_names(const SSL* ssl) {
  const X509* certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr) return std::nullopt;
  std::vector<std::string> names;
  add_common_names(names, certificate);
  add_dns_names(names, certificate);
  return names;
}

}  // namespace lokadb
