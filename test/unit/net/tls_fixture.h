// Keys and certificates in a temporary folder, and connections over memory, for tests of TLS.
#pragma once

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "net/tls.h"

namespace lokadb::tls_test {

struct Key {
  EVP_PKEY* pkey = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  ~Key() {
    EVP_PKEY_free(pkey);
    X509_free(certificate);
  }
};

inline void extend(X509* certificate, int nid, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
  BOOST_REQUIRE(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// A certificate for `key`, signed by `ca` (by itself if null).
inline void sign(Key& key, const Key* ca, const std::string& name, const char* alternative_names) {
  static long serial = 0;
  X509_set_version(key.certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(key.certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(key.certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(key.certificate), 3600);
  X509_set_pubkey(key.certificate, key.pkey);
  X509_NAME* subject = X509_get_subject_name(key.certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name.data()),
                             static_cast<int>(name.size()), -1, 0);
  X509_set_issuer_name(key.certificate, ca != nullptr ? X509_get_subject_name(ca->certificate) : subject);
  if (ca == nullptr) extend(key.certificate, NID_basic_constraints, "critical,CA:TRUE");
  if (alternative_names != nullptr) extend(key.certificate, NID_subject_alt_name, alternative_names);
  BOOST_REQUIRE(X509_sign(key.certificate, ca != nullptr ? ca->pkey : key.pkey, EVP_sha256()) > 0);
}

// A folder with the keys and certificates of all tests: made once, as each key costs time.
class Folder {
 public:
  Folder() {
    char path[] = "/tmp/tls-test.XXXXXX";
    BOOST_REQUIRE(mkdtemp(path) != nullptr);
    path_ = path;
    Key ca, other_ca, host, ip_only, bob;
    sign(ca, nullptr, "First CA", nullptr);
    sign(other_ca, nullptr, "Second CA", nullptr);
    sign(host, &ca, "db", "DNS:db.example.org,IP:10.0.0.1,IP:2001:db8::1");
    sign(ip_only, &ca, "10.0.0.9", nullptr);
    sign(bob, &ca, "bob", "DNS:robert,DNS:bobby");
    save(ca, "ca");
    save(other_ca, "other_ca");
    save(host, "host");
    save(ip_only, "ip_only");
    save(bob, "bob");
    save_encrypted(bob);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator()(const std::string& name) const { return path_ + "/" + name; }

 private:
  void save(const Key& key, const std::string& name) {
    std::FILE* file = std::fopen((*this)(name + ".key").c_str(), "w");
    PEM_write_PrivateKey(file, key.pkey, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    file = std::fopen((*this)(name + ".crt").c_str(), "w");
    PEM_write_X509(file, key.certificate);
    std::fclose(file);
  }
  void save_encrypted(const Key& key) {
    std::FILE* file = std::fopen((*this)("encrypted.key").c_str(), "w");
    const unsigned char passphrase[] = "x";
    PEM_write_PrivateKey(file, key.pkey, EVP_aes_128_cbc(), passphrase, 1, nullptr, nullptr);
    std::fclose(file);
  }
  std::string path_;
};

inline const Folder& in_folder() {
  static Folder folder;
  return folder;
}

// Both ends of one connection, joined by memory.
struct Pair {
  SslPtr client, server;
  std::string client_error, server_error;

  Pair(SslPtr connecting, SslPtr accepting) : client(std::move(connecting)), server(std::move(accepting)) {
    BOOST_REQUIRE(client);
    BOOST_REQUIRE(server);
    BIO *one = nullptr, *two = nullptr;
    BOOST_REQUIRE(BIO_new_bio_pair(&one, 0, &two, 0) == 1);
    SSL_set_bio(client.get(), one, one);
    SSL_set_bio(server.get(), two, two);
  }
  bool shake() {
    for (int i = 0; i < 10; ++i) {
      bool client_done = step(client.get(), client_error), server_done = step(server.get(), server_error);
      if (client_done && server_done) break;
    }
    read(client.get(), client_error);  // an alert that came after our side was done
    read(server.get(), server_error);
    return client_error.empty() && server_error.empty() && SSL_is_init_finished(client.get()) &&
           SSL_is_init_finished(server.get());
  }

 private:
  static bool step(SSL* ssl, std::string& error) {
    if (!error.empty()) return true;
    ERR_clear_error();
    int done = SSL_do_handshake(ssl);
    if (done != 1 && SSL_get_error(ssl, done) == SSL_ERROR_SSL) error = last_error_text(ssl);
    return done == 1;
  }
  static void read(SSL* ssl, std::string& error) {
    char byte;
    if (!error.empty()) return;
    ERR_clear_error();
    int got = SSL_read(ssl, &byte, 1);
    if (got <= 0 && SSL_get_error(ssl, got) == SSL_ERROR_SSL) error = last_error_text(ssl);
  }
};

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct TlsFixture {
  const Folder& in = in_folder();
  TlsSettings accept, connect;

  TlsFixture() {
    accept.key_file = in("host.key");
    accept.cert_file = in("host.crt");
    connect.ca_file = in("ca.crt");
    connect.verify = TlsVerify::Full;
  }
  TlsContextPtr accepting() const {
    auto made = make_client_side(accept);
    BOOST_REQUIRE_MESSAGE(bool(made), (made ? "" : made.error().log_text()));
    return *made;
  }
  TlsContextPtr connecting() const {
    auto made = make_server_side(connect);
    BOOST_REQUIRE_MESSAGE(bool(made), (made ? "" : made.error().log_text()));
    return *made;
  }
  Pair pair(const std::string& host = "db.example.org") const {
    return {connecting()->new_session(host), accepting()->new_session()};
  }
  std::string client_side_error() const {
    auto made = make_client_side(accept);
    BOOST_REQUIRE(!made);
    BOOST_TEST(made.error().to_client == "TLS setup failed");
    BOOST_TEST(ERR_peek_error() == 0u);
    return made.error().log_text();
  }
  std::string server_side_error() const {
    auto made = make_server_side(connect);
    BOOST_REQUIRE(!made);
    return made.error().log_text();
  }
};

}  // namespace lokadb::tls_test
