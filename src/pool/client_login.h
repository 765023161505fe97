// The first part of a client's life: TLS, start-up packet, who it is, and the welcome. Gone when the session is Idle.
//
// Sources: client_login.cc (up to the start-up packet), client_identity.cc (who it is), client_lookup.cc
// (auth_query), client_outside.cc (PAM and LDAP), client_welcome.cc (and in).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "auth/client_auth.h"
#include "auth/user_lookup.h"
#include "pool/client_session.h"
#include "proto/startup.h"

namespace lokadb {

struct HbaRule;

class ClientLogin final : public Buriable {
 public:
  explicit ClientLogin(ClientSession& session);
  ~ClientLogin() override;

  // Handles one packet at the front of `in`; returns its length, 0 if it is not there as a whole yet. May close the
  // session, or end this object's life (the session then is Idle, Welcome or Console).
  std::size_t consume(Bytes in);

  UserLookup& lookup() { return *lookup_; }
  void lookup_answered();

  bool is_in_handshake() const { return is_in_handshake_; }
  bool continue_handshake();  // false: needs more bytes, or failed (session closed)

  const char* database_name() const { return database_.empty() ? "(nodb)" : database_.c_str(); }
  const char* user_name() const { return user_.empty() ? "(nouser)" : user_.c_str(); }

  static void send_replication_welcome(ClientSession& session, ServerConnection& server);
  static void write_cancel_key(ClientSession& session, ByteBuffer& out);
  // Values that the server has by another spelling are in its spelling from now on.
  static void take_spelling(ClientSession& session, const ParameterSet& there);
  // The pool's welcome is there.
  static void send_welcome(ClientSession& session, const Welcome& welcome);

 private:
  std::size_t consume_first_packet(Bytes in);
  void answer_ssl();
  void start_tls();
  void refuse(const Error& error) { session_.close(error); }

  void handle_startup(Bytes packet);
  Result<Done> read_parameters(const StartupParameters& startup);
  Result<Done> set_parameter(std::string_view name, std::string_view value);
  std::string place_of_client() const;
  Result<Done> read_options(std::string_view options);
  bool is_ignored(std::string_view name) const;
  Result<bool> is_taken_by_plugin(std::string_view name, std::string_view value);
  bool wants(std::string_view name, std::string_view value);
  void log_attempt() const;
  void negotiate_protocol();
  void identify();
  Result<Done> find_names();
  void admit_user();
  Result<Done> count_in();

  // The user is not in the auth_file: auth_query (client_lookup.cc).
  bool needs_lookup() const;
  const OptionalText& auth_user() const;
  void start_lookup();
  Result<Done> enter_lookup_pool();

  Result<Done> check_console_access();
  // How the client has to prove who it is: by AuthType, where Hba stands for its method "peer"; the rule that said so.
  struct Demand {
    AuthType type;
    const HbaRule* rule;  // null: auth_type said so; of the configuration in force
  };
  Result<Demand> demand() const;
  void begin_auth();
  void begin_exchange(AuthType type);
  Result<Done> check_certificate(const HbaRule* rule) const;
  Result<Done> check_system_user(const HbaRule& rule) const;
  void finish_without_secret(const Result<Done>& checked);

  // Somebody else knows the password (client_outside.cc).
  struct Outside;
  bool is_proven_outside() const;
  void ask_outside_password(const Demand& demand);
  void outside_password(Bytes body);
  void outside_answered();

  void auth_message(Bytes body);
  void auth_result(Result<AuthStep> step, const ByteBuffer& out);
  void remember_verifier();
  void remember_keys();
  void remember_lookup(Pool& pool) const;
  void logged_in();
  void open_console();
  void open_pool();
  void open_replication();

  ClientSession& session_;
  bool is_in_handshake_ = false;
  bool is_direct_tls_ = false;  // it began without an SSLRequest
  std::string database_, user_;
  ParameterValues wanted_;
  ReplicationMode replication_ = ReplicationMode::None;
  std::string raw_options_;  // of a replication connection: the server's to understand
  bool wants_negotiation_ = false;
  std::uint32_t version_ = kProtocol30;  // spoken with the client
  std::vector<std::string> protocol_options_;
  bool database_is_known_ = false;
  bool user_is_known_ = false;
  bool was_looked_up_ = false;
  std::unique_ptr<UserLookup> lookup_;
  std::unique_ptr<ClientAuth> auth_;
  std::unique_ptr<Outside> outside_;
  std::string secret_;
};

}  // namespace lokadb
