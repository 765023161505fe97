// TLS by OpenSSL: contexts made from the options, sessions made from contexts, and what people read about them.
// No sockets and no event loop here. Nothing throws.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "net/loop.h"
#include "net/tls_info.h"  // part of this interface

namespace lokadb {

// What the peer's certificate must show.
enum class TlsVerify {
  None,  // from a server: anything goes. From a client: it may have none, but one it shows must pass the CA file
  Ca,    // signed by the CA
  Full,  // and, of servers, made out for the host we connect to; of clients the same as Ca
};

// The client_tls_* or server_tls_* options of that name, as the file has them.
struct TlsSettings {
  TlsVerify verify = TlsVerify::None;
  std::string key_file, cert_file, ca_file;
  std::string ciphers = "default";           // default, secure, fast, normal: OpenSSL's; else a cipher list (up to 1.2)
  std::optional<std::string> tls13_ciphers;  // unset or empty: OpenSSL's
  std::string protocols = "secure";          // list of all, legacy, secure, default, tlsv1, tlsv1.0 ... tlsv1.3, "!x"
  std::string dheparams = "auto";            // auto, none; towards clients only
  std::string ecdhcurve = "auto";            // auto, none (both: OpenSSL's), or a name; towards clients only
};

using SslPtr = std::unique_ptr<SSL, Calls<SSL_free>>;

// Immutable once made, so threads share it; a session keeps what it needs of it and may outlive it.
class TlsContext {
 public:
  // A session in the role of its context, not connected to anything; nullptr if memory is short or (connecting) the
  // host cannot be checked or sent. The context's side accepts or connects already (SSL_do_handshake works).
  //   host  connecting only: the name or IP literal of the configuration. Checked if verify is Full, when it must not
  //         be empty; a name is sent as SNI in any mode, a literal never.
  //   thread  any; the session itself belongs to one thread at a time
  // Before each SSL_ call whose error shall be asked for with SSL_get_error, the thread's error queue must be empty.
  SslPtr new_session(const std::string& host = {}) const;

  // Both were made from equal settings and equal contents of the files: sessions of one are as good as the other's.
  bool same_as(const TlsContext& other) const { return fingerprint_ == other.fingerprint_; }

 private:
  friend struct TlsContextMaker;
  TlsContext() = default;

  std::unique_ptr<SSL_CTX, Calls<SSL_CTX_free>> ctx_;
  bool accepts_ = false;
  TlsVerify verify_ = TlsVerify::None;
  std::string fingerprint_;  // SHA-256 of settings and files
};
using TlsContextPtr = std::shared_ptr<const TlsContext>;

// Both sides know by ALPN that this is PostgreSQL's protocol: asked of every server, and answered to clients that ask.
// Needed where TLS begins without an SSLRequest.
bool has_agreed_on_alpn(const SSL* ssl);

// For clients that connect to us: key and certificate are needed, a CA file too unless verify is None.
// For our connections to servers: all files are optional (key and certificate come as a pair); without a CA file
// servers are checked against the system's store.
//   errors  log_text() is the whole line to log, "TLS setup failed: ..." mostly; to_client has no file names
//   thread  any; reads files
Result<TlsContextPtr> make_client_side(const TlsSettings& settings);
Result<TlsContextPtr> make_server_side(const TlsSettings& settings);

}  // namespace lokadb
