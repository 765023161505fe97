// What people read about TLS sessions and their faults.
#pragma once

#include <openssl/ssl.h>

#include <optional>
#include <string>
#include <vector>

namespace lokadb {

// "TLSv1.3/TLS_AES_256_GCM_SHA384/ECDH=x25519": protocol, cipher, and where known the key exchange ("/ECDH=curve" or
// "/DH=bits"). Empty until the handshake is done.
std::string describe(SSL* ssl);

// Text for "TLS handshake error: ..." from the oldest entry of this thread's OpenSSL error queue, which is emptied; for
// a failed verification with the reason, taken from `ssl` if given. "connection closed" if the queue is empty.
std::string last_error_text(const SSL* ssl = nullptr);

// Common names and DNS alternative names of the peer's certificate, as auth_type=cert compares them. Names with a zero
// byte inside are left out. nullopt: the peer showed no certificate.
std::optional<std::vector<std::string>> peer_certificate_names(const SSL* ssl);

}  // namespace lokadb
