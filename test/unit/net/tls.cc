// TLS contexts: what they refuse to be made from, and handshakes between both sides over memory.
#include "net/tls.h"

#include <openssl/err.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "tls_fixture.h"

using namespace lokadb;
using namespace lokadb::tls_test;

BOOST_FIXTURE_TEST_SUITE(net_tls, TlsFixture)

BOOST_AUTO_TEST_CASE(a_verified_connection_is_made_and_described) {
  auto p = pair();
  BOOST_TEST(describe(p.client.get()) == "");
  BOOST_TEST(p.shake());
  for (SSL* ssl : {p.client.get(), p.server.get()})
    BOOST_TEST(describe(ssl) == "TLSv1.3/TLS_AES_256_GCM_SHA384/ECDH=x25519");
  BOOST_TEST(SSL_get_servername(p.server.get(), TLSEXT_NAMETYPE_host_name) == std::string("db.example.org"));
  BOOST_TEST(!peer_certificate_names(p.server.get()).has_value());
}

BOOST_AUTO_TEST_CASE(tls12_is_described_too) {
  connect.protocols = "tlsv1.2";
  connect.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256";
  accept.ecdhcurve = "prime256v1";
  auto p = pair();
  BOOST_TEST(p.shake());
  for (SSL* ssl : {p.client.get(), p.server.get()})
    BOOST_TEST(describe(ssl) == "TLSv1.2/ECDHE-ECDSA-AES128-GCM-SHA256/ECDH=secp256r1");
}

BOOST_AUTO_TEST_CASE(another_ca_is_refused) {
  for (auto verify : {TlsVerify::Ca, TlsVerify::Full}) {
    connect.verify = verify;
    connect.ca_file = in("other_ca.crt");
    auto p = pair();
    BOOST_TEST(!p.shake());
    BOOST_TEST(has(p.client_error, "certificate verify failed (unable to get local issuer certificate)"));
    BOOST_TEST(has(p.server_error, "alert unknown ca"));
  }
}

BOOST_AUTO_TEST_CASE(without_verification_any_certificate_will_do) {
  connect.verify = TlsVerify::None;
  connect.ca_file = in("other_ca.crt");
  BOOST_TEST(pair("elsewhere").shake());
  BOOST_TEST(pair("").shake());
}

BOOST_AUTO_TEST_CASE(the_system_store_does_not_know_our_ca) {
  connect.ca_file = "";
  auto p = pair();
  BOOST_TEST(!p.shake());
  BOOST_TEST(has(p.client_error, "certificate verify failed"));
}

BOOST_AUTO_TEST_CASE(the_host_is_checked_by_full_only) {
  for (const char* host : {"other.example.org", "db", "10.0.0.2", "2001:db8::2"}) {
    connect.verify = TlsVerify::Full;
    auto p = pair(host);
    BOOST_TEST(!p.shake());
    BOOST_TEST(has(p.client_error, "certificate verify failed"));
    BOOST_TEST(has(p.client_error, "mismatch"));
    connect.verify = TlsVerify::Ca;
    BOOST_TEST(pair(host).shake());
  }
}

BOOST_AUTO_TEST_CASE(ip_literals_are_checked_as_such_and_sent_to_nobody) {
  for (const char* host : {"10.0.0.1", "2001:db8:0::1", "[2001:db8::1]"}) {
    auto p = pair(host);
    BOOST_TEST(p.shake(), host << ": " << p.client_error);
    BOOST_TEST(SSL_get_servername(p.server.get(), TLSEXT_NAMETYPE_host_name) == nullptr);
  }
}

BOOST_AUTO_TEST_CASE(an_ip_may_be_the_common_name_of_a_certificate_without_alternative_names) {
  accept.key_file = in("ip_only.key");
  accept.cert_file = in("ip_only.crt");
  BOOST_TEST(pair("10.0.0.9").shake());
  BOOST_TEST(!pair("10.0.0.8").shake());
  connect.ca_file = in("other_ca.crt");
  BOOST_TEST(!pair("10.0.0.9").shake());
}

BOOST_AUTO_TEST_CASE(full_verification_needs_a_host) { BOOST_TEST(connecting()->new_session("") == nullptr); }

BOOST_AUTO_TEST_CASE(protocols_of_both_sides_must_meet) {
  accept.protocols = "tlsv1.3";
  connect.protocols = "tlsv1.2";
  auto p = pair();
  BOOST_TEST(!p.shake());
  BOOST_TEST(has(p.server_error, "unsupported protocol"));
  BOOST_TEST(has(p.client_error, "alert protocol version"));
}

const std::pair<const char*, const char*> kProtocols[] = {
    {"all", "TLSv1.3"},
    {"TLSv1", "TLSv1.3"},
    {"all,!tlsv1.3", "TLSv1.2"},
    {"!tlsv1.3", "TLSv1.2"},
    {"secure", "TLSv1.3"},
    {"tlsv1.1:tlsv1.2", "TLSv1.2"},
    {"tlsv1.2, tlsv1.3", "TLSv1.3"},
    {"default:!tlsv1.2", "TLSv1.3"},
    {"legacy", "TLSv1.3"},
};
BOOST_AUTO_TEST_CASE(protocol_lists_are_understood) {
  for (auto [list, best] : kProtocols) {
    connect.protocols = list;
    auto p = pair();
    BOOST_TEST(p.shake(), list);
    BOOST_TEST(SSL_get_version(p.client.get()) == std::string(best), list);
  }
}

BOOST_AUTO_TEST_CASE(wrong_protocol_lists_are_refused) {
  for (const char* list : {"", "tlsv2", "secure,!secure", "!all", "!", "sslv3", "tlsv1.2 x"}) {
    accept.protocols = list;
    BOOST_TEST(client_side_error() == std::string("TLS setup failed: invalid value of client_tls_protocols: ") + list);
  }
}

BOOST_AUTO_TEST_CASE(tls10_works_when_ciphers_allow_it) {
  accept.protocols = connect.protocols = "tlsv1.0";
  accept.ciphers = connect.ciphers = "ALL:@SECLEVEL=0";
  auto p = pair();
  BOOST_TEST(p.shake(), p.client_error << p.server_error);
  BOOST_TEST(SSL_get_version(p.client.get()) == std::string("TLSv1"));
}

BOOST_AUTO_TEST_CASE(cipher_lists_are_set_or_refused) {
  accept.tls13_ciphers = "TLS_AES_128_GCM_SHA256";
  accept.ciphers = "fast";
  auto p = pair();
  BOOST_TEST(p.shake());
  BOOST_TEST(has(describe(p.server.get()), "TLSv1.3/TLS_AES_128_GCM_SHA256/"));
  accept.tls13_ciphers = "NO_SUCH_SUITE";
  BOOST_TEST(has(client_side_error(), "TLS setup failed: failed to set the TLSv1.3 cipher suites: "));
  accept.tls13_ciphers = "";
  accept.ciphers = "no-such-cipher";
  BOOST_TEST(has(client_side_error(), "TLS setup failed: failed to set the ciphers: "));
  BOOST_TEST(has(client_side_error(), "no cipher match"));
  connect.ciphers = "no-such-cipher";
  BOOST_TEST(has(server_side_error(), "failed to set the ciphers"));
}

BOOST_AUTO_TEST_CASE(key_exchange_options_are_checked) {
  for (const char* word : {"auto", "none"}) {
    accept.dheparams = accept.ecdhcurve = word;
    BOOST_TEST(pair().shake());
  }
  for (const char* word : {"legacy", "2048", ""}) {
    accept.dheparams = word;
    BOOST_TEST(client_side_error() == std::string("TLS setup failed: invalid value of client_tls_dheparams: ") + word);
  }
  accept.dheparams = "auto";
  accept.ecdhcurve = "curve0";
  BOOST_TEST(has(client_side_error(), "TLS setup failed: invalid value of client_tls_ecdhcurve: curve0"));
}

BOOST_AUTO_TEST_CASE(clients_need_a_key_and_a_certificate_of_ours) {
  const std::string text =
      "To allow TLS connections from clients, client_tls_key_file and client_tls_cert_file must be set.";
  accept.cert_file = "";
  BOOST_TEST(client_side_error() == text);
  accept = TlsSettings();
  accept.cert_file = in("host.crt");
  BOOST_TEST(client_side_error() == text);
}

BOOST_AUTO_TEST_CASE(missing_files_are_named_with_the_reason) {
  std::string path = in("nothing");
  auto text = [&](const char* option) {
    return std::string("TLS setup failed: failed to read ") + option + " \"" + path + "\": No such file or directory";
  };
  accept.key_file = path;
  BOOST_TEST(client_side_error() == text("client_tls_key_file"));
  accept.key_file = in("host.key");
  accept.cert_file = path;
  BOOST_TEST(client_side_error() == text("client_tls_cert_file"));
  accept.cert_file = in("host.crt");
  accept.ca_file = path;
  BOOST_TEST(client_side_error() == text("client_tls_ca_file"));
  connect.ca_file = path;
  BOOST_TEST(server_side_error() == text("server_tls_ca_file"));
  connect.ca_file = in("");
  BOOST_TEST(has(server_side_error(), "Is a directory"));
}

BOOST_AUTO_TEST_CASE(files_of_the_wrong_kind_are_refused) {
  accept.key_file = in("ca.key");
  BOOST_TEST(has(client_side_error(), "failed to load client_tls_key_file \"" + in("ca.key") + "\": "));
  BOOST_TEST(has(client_side_error(), "key values mismatch"));
  accept.key_file = in("host.crt");
  BOOST_TEST(has(client_side_error(), "failed to load client_tls_key_file"));
  accept.key_file = in("encrypted.key");
  accept.cert_file = in("bob.crt");
  BOOST_TEST(has(client_side_error(), "failed to load client_tls_key_file"));
  accept.cert_file = in("bob.key");
  BOOST_TEST(has(client_side_error(), "failed to load client_tls_cert_file"));
  connect.ca_file = in("bob.key");
  BOOST_TEST(has(server_side_error(), "no certificate in server_tls_ca_file"));
  std::ofstream(in("broken.crt")) << std::ifstream(in("host.crt")).rdbuf() << "-----BEGIN CERTIFICATE-----\nMIIB\n";
  accept.cert_file = in("broken.crt");
  accept.key_file = in("host.key");
  BOOST_TEST(has(client_side_error(), "failed to load client_tls_cert_file"));
}

BOOST_AUTO_TEST_CASE(towards_servers_key_and_certificate_come_as_a_pair) {
  connect.key_file = in("bob.key");
  BOOST_TEST(server_side_error() ==
             "TLS setup failed: server_tls_key_file and server_tls_cert_file must be set together");
}

BOOST_AUTO_TEST_CASE(clients_may_have_to_show_a_certificate) {
  accept.verify = TlsVerify::Ca;
  BOOST_TEST(has(client_side_error(), "client_tls_ca_file must be set"));
  accept.ca_file = in("ca.crt");
  auto bare = pair();
  BOOST_TEST(!bare.shake());
  BOOST_TEST(has(bare.server_error, "peer did not return a certificate"));
  connect.key_file = in("bob.key");
  connect.cert_file = in("bob.crt");
  auto bob = pair();
  BOOST_TEST(bob.shake());
  auto names = peer_certificate_names(bob.server.get());
  BOOST_REQUIRE(names.has_value());
  BOOST_TEST((*names == std::vector<std::string>{"bob", "robert", "bobby"}));
}

BOOST_AUTO_TEST_CASE(an_optional_certificate_must_still_be_a_good_one) {
  accept.ca_file = in("other_ca.crt");
  BOOST_TEST(pair().shake());
  connect.key_file = in("bob.key");
  connect.cert_file = in("bob.crt");
  auto p = pair();
  BOOST_TEST(!p.shake());
  BOOST_TEST(has(p.server_error, "certificate verify failed"));
  accept.ca_file = "";  // nothing to check it against: it is not asked for
  auto q = pair();
  BOOST_TEST(q.shake());
  BOOST_TEST(!peer_certificate_names(q.server.get()).has_value());
}

BOOST_AUTO_TEST_CASE(alpn_postgresql_is_selected_when_offered) {
  auto chosen = [&](const std::string& offer) {
    auto p = pair();
    SSL_set_alpn_protos(p.client.get(), reinterpret_cast<const unsigned char*>(offer.data()),
                        static_cast<unsigned>(offer.size()));
    BOOST_TEST(p.shake());
    const unsigned char* name = nullptr;
    unsigned length = 0;
    SSL_get0_alpn_selected(p.client.get(), &name, &length);
    return std::string(reinterpret_cast<const char*>(name), length);
  };
  BOOST_TEST(chosen("\2h2\12postgresql") == "postgresql");
  BOOST_TEST(chosen("\2h2") == "");
}

BOOST_AUTO_TEST_CASE(no_session_can_be_resumed) {
  auto server_side = accepting();
  for (const char* protocols : {"tlsv1.2", "tlsv1.3"}) {
    connect.protocols = protocols;
    auto context = connecting();
    Pair first(context->new_session("db.example.org"), server_side->new_session());
    BOOST_TEST(first.shake());
    SSL_SESSION* session = SSL_get1_session(first.client.get());
    Pair second(context->new_session("db.example.org"), server_side->new_session());
    SSL_set_session(second.client.get(), session);
    SSL_SESSION_free(session);
    BOOST_TEST(second.shake());
    BOOST_TEST(SSL_session_reused(second.client.get()) == 0);
  }
}

BOOST_AUTO_TEST_CASE(an_end_without_notice_is_a_normal_end) {
  auto p = pair();
  BOOST_TEST(p.shake());
  BIO_shutdown_wr(SSL_get_wbio(p.client.get()));
  char byte;
  int got = SSL_read(p.server.get(), &byte, 1);
  BOOST_TEST(SSL_get_error(p.server.get(), got) == SSL_ERROR_ZERO_RETURN);
}

BOOST_AUTO_TEST_CASE(equal_settings_and_files_make_equal_contexts) {
  std::string copy = in("copy.crt");
  std::filesystem::copy_file(in("ca.crt"), copy, std::filesystem::copy_options::overwrite_existing);
  auto before = connecting();
  BOOST_TEST(before->same_as(*connecting()));
  connect.ca_file = copy;  // another name, the same content
  BOOST_TEST(before->same_as(*connecting()));
  std::filesystem::copy_file(in("other_ca.crt"), copy, std::filesystem::copy_options::overwrite_existing);
  BOOST_TEST(!before->same_as(*connecting()));
  connect.ca_file = in("ca.crt");
  connect.protocols = "tlsv1.2";
  BOOST_TEST(!before->same_as(*connecting()));
  connect.protocols = "secure";
  connect.verify = TlsVerify::Ca;
  BOOST_TEST(!before->same_as(*connecting()));
  BOOST_TEST(!before->same_as(*accepting()));
}

BOOST_AUTO_TEST_CASE(sessions_outlive_their_context) {
  SslPtr client = connecting()->new_session("db.example.org"), server = accepting()->new_session();
  BOOST_TEST(Pair(std::move(client), std::move(server)).shake());
}

BOOST_AUTO_TEST_CASE(an_empty_error_queue_means_a_closed_connection) {
  ERR_clear_error();
  BOOST_TEST(last_error_text() == "connection closed");
  ERR_raise(ERR_LIB_SSL, SSL_R_HTTP_REQUEST);
  ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
  BOOST_TEST(has(last_error_text(), "http request"));
  BOOST_TEST(ERR_peek_error() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
