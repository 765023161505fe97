#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/text.h"
#include "net/address.h"

namespace lokadb {
namespace {

constexpr std::size_t kMaxFileBytes = 16 << 20;  // a bundle of all public CAs has less than one MiB
constexpr std::string_view kAlpnProtocol = "postgresql";

struct OpenSslFree {
  void operator()(BIO* p) const noexcept { BIO_free(p); }
  void operator()(X509* p) const noexcept { X509_free(p); }
  void operator()(EVP_PKEY* p) const noexcept { EVP_PKEY_free(p); }
  void operator()(STACK_OF(X509_INFO) * p) const noexcept { sk_X509_INFO_pop_free(p, X509_INFO_free); }
  void operator()(char* p) const noexcept { OPENSSL_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, OpenSslFree>;

Error setup_error(const std::string& text) {
  return {sqlstate::kReloadFailed, Severity::Error, "TLS setup failed", "TLS setup failed: " + text};
}

// With OpenSSL's reason.
Error openssl_error(const std::string& text) { return setup_error(text + ": " + last_error_text()); }

Result<Done> read_file(const std::string& option, const std::string& path, std::string& out) {
  if (path.empty()) return Done{};
  auto failed = [&](const char* why) { return setup_error("failed to read " + option + " \"" + path + "\": " + why); };
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (!file) return failed(std::strerror(errno));
  std::setvbuf(file.get(), nullptr, _IONBF, 0);  // no second copy of a key in memory that nobody wipes
  std::size_t had = 0, got = 0;
  do {
    had += got;
    if (had > kMaxFileBytes) return failed("too long");
    out.resize(had + 65536);
    got = std::fread(out.data() + had, 1, out.size() - had, file.get());
  } while (got > 0);
  if (std::ferror(file.get()) != 0) return failed(std::strerror(errno));
  out.resize(had);
  return Done{};
}

struct TlsFiles {
  std::string key, cert, ca;
  ~TlsFiles() { OPENSSL_cleanse(key.data(), key.size()); }
};

// nullopt: an unknown word, or nothing left. Words as PgBouncer's; a list that begins with "!x" means all but x.
std::optional<unsigned> parse_protocols(const std::string& list) {
  constexpr unsigned k10 = 1, k11 = 2, k12 = 4, k13 = 8;
  struct Word {
    std::string_view text;
    unsigned protocols;
  };
  constexpr Word kWords[] = {
      {"all", k10 | k11 | k12 | k13},
      {"legacy", k10 | k11 | k12 | k13},
      {"secure", k12 | k13},
      {"default", k12 | k13},
      {"tlsv1", k10 | k11 | k12 | k13},
      {"tlsv1.0", k10},
      {"tlsv1.1", k11},
      {"tlsv1.2", k12},
      {"tlsv1.3", k13},
  };
  unsigned chosen = 0;
  bool is_first = true;
  std::string commas = list;
  for (char& c : commas)
    if (c == ':') c = ',';
  for (std::string_view word : split_list(commas)) {
    bool is_removed = word.front() == '!';
    if (is_removed) word.remove_prefix(1);
    if (is_removed && is_first) chosen = kWords[0].protocols;
    is_first = false;
    const Word* known = nullptr;
    for (const Word& w : kWords)
      if (iequals(w.text, word)) known = &w;
    if (known == nullptr) return std::nullopt;
    chosen = is_removed ? chosen & ~known->protocols : chosen | known->protocols;
  }
  if (chosen == 0) return std::nullopt;
  return chosen;
}

Result<Done> set_protocols(SSL_CTX* ctx, const std::string& prefix, const std::string& list) {
  constexpr std::uint64_t kOff[] = {SSL_OP_NO_TLSv1, SSL_OP_NO_TLSv1_1, SSL_OP_NO_TLSv1_2, SSL_OP_NO_TLSv1_3};
  auto chosen = parse_protocols(list);
  if (!chosen) return setup_error("invalid value of " + prefix + "protocols: " + list);
  // The system's openssl.cnf may have narrowed the range: this option speaks for itself.
  SSL_CTX_set_min_proto_version(ctx, 0);
  SSL_CTX_set_max_proto_version(ctx, 0);
  SSL_CTX_clear_options(ctx, kOff[0] | kOff[1] | kOff[2] | kOff[3]);
  SSL_CTX_set_options(ctx, SSL_OP_NO_SSLv3);
  for (unsigned i = 0; i < 4; ++i)
    if ((*chosen & (1u << i)) == 0) SSL_CTX_set_options(ctx, kOff[i]);
  return Done{};
}

Result<Done> set_ciphers(SSL_CTX* ctx, const TlsSettings& settings) {
  bool is_default = settings.ciphers.empty();
  for (const char* word : {"default", "secure", "fast", "normal"})
    is_default = is_default || iequals(settings.ciphers, word);
  if (!is_default && SSL_CTX_set_cipher_list(ctx, settings.ciphers.c_str()) != 1)
    return openssl_error("failed to set the ciphers");
  if (settings.tls13_ciphers && !settings.tls13_ciphers->empty() &&
      SSL_CTX_set_ciphersuites(ctx, settings.tls13_ciphers->c_str()) != 1)
    return openssl_error("failed to set the TLSv1.3 cipher suites");
  return Done{};
}

Result<Done> set_key_exchange(SSL_CTX* ctx, const TlsSettings& settings) {
  if (iequals(settings.dheparams, "auto")) {
    SSL_CTX_set_dh_auto(ctx, 1);
  } else if (!iequals(settings.dheparams, "none")) {
    return setup_error("invalid value of client_tls_dheparams: " + settings.dheparams);
  }
  const std::string& curve = settings.ecdhcurve;
  // OpenSSL chooses the curve by itself; "none" never switched ECDH off with the versions of it we know.
  if (iequals(curve, "auto") || iequals(curve, "none")) return Done{};
  if (SSL_CTX_set1_groups_list(ctx, curve.c_str()) != 1)
    return openssl_error("invalid value of client_tls_ecdhcurve: " + curve);
  return Done{};
}

// Keys with a passphrase are refused: there is nobody to ask, and OpenSSL would ask the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

Owned<BIO> reader(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// The certificate first, then those between it and the CA.
Result<Done> set_chain(SSL_CTX* ctx, const std::string& pem, const std::string& what) {
  auto in = reader(pem);
  Owned<X509> leaf(PEM_read_bio_X509_AUX(in.get(), nullptr, no_passphrase, nullptr));
  if (!leaf || SSL_CTX_use_certificate(ctx, leaf.get()) != 1) return openssl_error("failed to load " + what);
  while (Owned<X509> next{PEM_read_bio_X509(in.get(), nullptr, no_passphrase, nullptr)}) {
    if (SSL_CTX_add0_chain_cert(ctx, next.get()) != 1) return openssl_error("failed to load " + what);
    [[maybe_unused]] X509* taken = next.release();
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) return openssl_error("failed to load " + what);
  ERR_clear_error();  // no start line: the end of the file
  return Done{};
}

Result<Done> set_identity(SSL_CTX* ctx, const std::string& prefix, const TlsSettings& s, const TlsFiles& files) {
  if (s.key_file.empty() && s.cert_file.empty()) return Done{};
  if (s.key_file.empty() || s.cert_file.empty())
    return setup_error(prefix + "key_file and " + prefix + "cert_file must be set together");
  auto chain = set_chain(ctx, files.cert, prefix + "cert_file \"" + s.cert_file + "\"");
  if (!chain) return chain;
  auto in = reader(files.key);
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr));
  if (!key || SSL_CTX_use_PrivateKey(ctx, key.get()) != 1 || SSL_CTX_check_private_key(ctx) != 1)
    return openssl_error("failed to load " + prefix + "key_file \"" + s.key_file + "\"");
  return Done{};
}

// `names_them`: tell clients which CAs we trust, so that they can choose among their certificates.
Result<Done> set_trust(SSL_CTX* ctx, const std::string& pem, const std::string& what, bool names_them) {
  auto in = reader(pem);
  Owned<STACK_OF(X509_INFO)> all(PEM_X509_INFO_read_bio(in.get(), nullptr, no_passphrase, nullptr));
  if (!all) return openssl_error("failed to load " + what);
  int certificates = 0;
  for (int i = 0; i < sk_X509_INFO_num(all.get()); ++i) {
    X509* ca = sk_X509_INFO_value(all.get(), i)->x509;
    if (ca == nullptr) continue;
    ++certificates;
    bool is_done = X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca) == 1;
    if (is_done && names_them) is_done = SSL_CTX_add_client_CA(ctx, ca) == 1;
    if (!is_done) return openssl_error("failed to load " + what);
  }
  if (certificates == 0) return setup_error("no certificate in " + what);
  return Done{};
}

int choose_alpn(SSL*, const unsigned char** out, unsigned char* out_length, const unsigned char* in,
                unsigned int in_length, void*) {
  // A list of length bytes and names, checked by OpenSSL.
  for (unsigned at = 0; at < in_length; at += in[at] + 1u) {
    std::string_view name(reinterpret_cast<const char*>(in + at + 1), in[at]);
    if (name != kAlpnProtocol) continue;
    *out = in + at + 1;
    *out_length = in[at];
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_NOACK;  // no ALPN, as for those who did not ask
}

// What servers are asked for: that one name, with its length before it.
bool offer_alpn(SSL_CTX* ctx) {
  std::string list(1, static_cast<char>(kAlpnProtocol.size()));
  list += kAlpnProtocol;
  return SSL_CTX_set_alpn_protos(ctx, reinterpret_cast<const unsigned char*>(list.data()),
                                 static_cast<unsigned>(list.size())) == 0;
}

// PgBouncer and libpq let an old certificate without any alternative name carry the IP address as its common name,
// which OpenSSL does for host names only.
int allow_ip_as_common_name(int is_ok, X509_STORE_CTX* store) {
  if (is_ok != 0 || X509_STORE_CTX_get_error(store) != X509_V_ERR_IP_ADDRESS_MISMATCH) return is_ok;
  X509* certificate = X509_STORE_CTX_get0_cert(store);
  Owned<char> wanted(X509_VERIFY_PARAM_get1_ip_asc(X509_STORE_CTX_get0_param(store)));
  char name[256];
  int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof(name));
  if (!wanted || length <= 0 || X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1) >= 0) return 0;
  auto ours = parse_ip(wanted.get(), 0);
  auto theirs = parse_ip(std::string_view(name, static_cast<std::size_t>(length)), 0);
  if (!ours || !theirs || !(*ours == *theirs)) return 0;
  X509_STORE_CTX_set_error(store, X509_V_OK);
  return 1;
}

// What holds for every connection of ours. Sessions are never resumed: the proxy keeps its connections, and a resumed
// one would skip the checks a reload may have brought.
void set_common(SSL_CTX* ctx) {
  SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF |
                               SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(ctx, 0);  // SSL_OP_NO_TICKET leaves TLS 1.3 its other kind of tickets
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(ctx, 1);
}

// Each text with its length before it, so that no two lists of texts give the same bytes.
std::string fingerprint(bool accepts, const TlsSettings& s, const TlsFiles& files) {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!hash || EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) != 1) return "";
  const std::string head = format("%d %d %d", accepts, static_cast<int>(s.verify), s.tls13_ciphers.has_value());
  const std::string tls13_ciphers = s.tls13_ciphers.value_or("");
  for (const std::string* text : {&head, &s.ciphers, &tls13_ciphers, &s.protocols, &s.dheparams, &s.ecdhcurve,
                                  &files.key, &files.cert, &files.ca}) {
    std::size_t size = text->size();
    EVP_DigestUpdate(hash.get(), &size, sizeof(size));
    EVP_DigestUpdate(hash.get(), text->data(), size);
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_DigestFinal_ex(hash.get(), digest, &length) != 1) return "";
  return std::string(reinterpret_cast<char*>(digest), length);
}

}  // namespace

// The steps of make_client_side and make_server_side.
struct TlsContextMaker {
  bool accepts;
  std::string prefix;  // of the options, for texts
  const TlsSettings& settings;
  TlsFiles files{};

  Result<TlsContextPtr> make() {
    ERR_clear_error();
    std::shared_ptr<TlsContext> made(new TlsContext);
    made->accepts_ = accepts;
    made->verify_ = settings.verify;
    made->ctx_.reset(SSL_CTX_new(accepts ? TLS_server_method() : TLS_client_method()));
    if (!made->ctx_) return openssl_error("failed to make a context");
    SSL_CTX* ctx = made->ctx_.get();
    set_common(ctx);
    for (auto step : {&TlsContextMaker::read_files, &TlsContextMaker::set_algorithms, &TlsContextMaker::set_files})
      if (auto done = (this->*step)(ctx); !done) return std::move(done.error());
    made->fingerprint_ = fingerprint(accepts, settings, files);
    if (made->fingerprint_.empty()) return openssl_error("failed to digest the settings");
    return TlsContextPtr(std::move(made));
  }

 private:
  Result<Done> read_files(SSL_CTX*) {
    auto done = read_file(prefix + "key_file", settings.key_file, files.key);
    if (done) done = read_file(prefix + "cert_file", settings.cert_file, files.cert);
    if (done) done = read_file(prefix + "ca_file", settings.ca_file, files.ca);
    return done;
  }

  Result<Done> set_algorithms(SSL_CTX* ctx) {
    auto done = set_protocols(ctx, prefix, settings.protocols);
    if (done) done = set_ciphers(ctx, settings);
    if (done && accepts) done = set_key_exchange(ctx, settings);
    return done;
  }

  Result<Done> set_files(SSL_CTX* ctx) {
    auto done = set_identity(ctx, prefix, settings, files);
    if (!done) return done;
    if (accepts) SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, nullptr);
    if (!accepts && !offer_alpn(ctx)) return openssl_error("failed to set ALPN");
    return accepts ? verify_clients(ctx) : verify_servers(ctx);
  }

  std::string ca_text() const { return prefix + "ca_file \"" + settings.ca_file + "\""; }

  // Without a CA file no certificate is asked for: there is nothing to check it against.
  Result<Done> verify_clients(SSL_CTX* ctx) {
    bool is_needed = settings.verify != TlsVerify::None;
    if (settings.ca_file.empty()) {
      if (is_needed) return setup_error("client_tls_ca_file must be set to verify the certificates of clients");
      return Done{};
    }
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | (is_needed ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
    return set_trust(ctx, files.ca, ca_text(), true);
  }

  // The CA file is read even if nothing is verified, so that a wrong one is found when it is set.
  Result<Done> verify_servers(SSL_CTX* ctx) {
    bool is_needed = settings.verify != TlsVerify::None;
    if (is_needed) SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, allow_ip_as_common_name);
    if (!settings.ca_file.empty()) return set_trust(ctx, files.ca, ca_text(), false);
    if (is_needed && SSL_CTX_set_default_verify_paths(ctx) != 1)
      return openssl_error("failed to load the system's CA certificates");
    return Done{};
  }
};

Result<TlsContextPtr> make_client_side(const TlsSettings& settings) {
  if (settings.key_file.empty() || settings.cert_file.empty()) {
    return Error{sqlstate::kReloadFailed, Severity::Error, "TLS setup failed",
                 "To allow TLS connections from clients, client_tls_key_file and client_tls_cert_file must be set."};
  }
  return TlsContextMaker{true, "client_tls_", settings}.make();
}

Result<TlsContextPtr> make_server_side(const TlsSettings& settings) {
  return TlsContextMaker{false, "server_tls_", settings}.make();
}

bool has_agreed_on_alpn(const SSL* ssl) {
  const unsigned char* name = nullptr;
  unsigned length = 0;
  SSL_get0_alpn_selected(ssl, &name, &length);
  return std::string_view(reinterpret_cast<const char*>(name), length) == kAlpnProtocol;
}

SslPtr TlsContext::new_session(const std::string& host) const {
  SslPtr ssl(SSL_new(ctx_.get()));
  if (!ssl) return nullptr;
  if (accepts_) {
    SSL_set_accept_state(ssl.get());
    return ssl;
  }
  SSL_set_connect_state(ssl.get());
  auto ip = parse_ip(host, 0);
  bool is_name = !ip && !host.empty();
  if (is_name && SSL_set_tlsext_host_name(ssl.get(), host.c_str()) != 1) return nullptr;
  if (verify_ != TlsVerify::Full) return ssl;
  if (host.empty()) return nullptr;  // OpenSSL takes an empty name for "do not check"
  SSL_set_hostflags(ssl.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  int done = ip ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), ip_text(*ip).c_str())
                : SSL_set1_host(ssl.get(), host.c_str());
  if (done != 1) return nullptr;
  return ssl;
}

}  // namespace lokadb
