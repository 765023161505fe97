#include "cli/credentials.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace lokadb::cli {

namespace {

constexpr int kNonceSize = 12;
constexpr int kTagSize = 16;
constexpr std::size_t kKeySize = 32;

std::string to_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned char c : bytes) {
    hex += kDigits[c >> 4];
    hex += kDigits[c & 15];
  }
  return hex;
}

std::string from_hex(std::string_view hex) {
  auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    if (digit(hex[i]) < 0 || digit(hex[i + 1]) < 0) return {};
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  return hex.size() % 2 == 0 ? bytes : std::string();
}

std::string random_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(size)) != 1)
    throw Failure{"no random bytes"};
  return bytes;
}

const unsigned char* bytes_of(const std::string& s) { return reinterpret_cast<const unsigned char*>(s.data()); }

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)>;

std::string associated_data(const std::string& org, const std::string& kind, const std::string& user) {
  return "lokadb\n" + org + "\n" + kind + "\n" + user;
}

}  // namespace

void make_key_file(const std::string& path) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) throw Failure{path + ": " + std::strerror(errno)};
  std::string line = to_hex(random_bytes(kKeySize)) + "\n";
  bool written = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && fsync(fd) == 0;
  close(fd);
  if (!written) throw Failure{path + ": cannot be written"};
}

std::string read_key_file(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) throw Failure{path + ": " + std::strerror(errno)};
  if ((info.st_mode & 077) != 0) throw Failure{path + ": others may read the key file: chmod 600 it"};
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  std::string key = from_hex(line);
  if (key.size() != kKeySize) throw Failure{path + ": not a key file of lokadb keygen"};
  return key;
}

std::string encrypt(const std::string& key, const std::string& text, const std::string& associated) {
  Cipher cipher(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  std::string nonce = random_bytes(kNonceSize), out(text.size(), '\0'), tag(kTagSize, '\0');
  auto* to = reinterpret_cast<unsigned char*>(out.data());
  int n = 0;
  bool ok =
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes_of(key), bytes_of(nonce)) == 1 &&
      EVP_EncryptUpdate(cipher.get(), nullptr, &n, bytes_of(associated), static_cast<int>(associated.size())) == 1 &&
      EVP_EncryptUpdate(cipher.get(), to, &n, bytes_of(text), static_cast<int>(text.size())) == 1 &&
      EVP_EncryptFinal_ex(cipher.get(), to + n, &n) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagSize, tag.data()) == 1;
  if (!ok) throw Failure{"encryption failed"};
  return "\\x" + to_hex(nonce + tag + out);
}

std::string decrypt(const std::string& key, const std::string& bytes, const std::string& associated) {
  std::string all = from_hex(bytes.starts_with("\\x") ? std::string_view(bytes).substr(2) : std::string_view(bytes));
  const Failure wrong{"the credentials cannot be read: another key file, or not what was stored"};
  if (all.size() < kNonceSize + kTagSize) throw wrong;
  std::string nonce = all.substr(0, kNonceSize), tag = all.substr(kNonceSize, kTagSize);
  std::string text = all.substr(kNonceSize + kTagSize), out(text.size(), '\0');
  auto* to = reinterpret_cast<unsigned char*>(out.data());
  Cipher cipher(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int n = 0;
  bool ok =
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes_of(key), bytes_of(nonce)) == 1 &&
      EVP_DecryptUpdate(cipher.get(), nullptr, &n, bytes_of(associated), static_cast<int>(associated.size())) == 1 &&
      EVP_DecryptUpdate(cipher.get(), to, &n, bytes_of(text), static_cast<int>(text.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagSize, tag.data()) == 1 &&
      EVP_DecryptFinal_ex(cipher.get(), to + n, &n) == 1;
  if (!ok) throw wrong;
  return out;
}

void check_control_plane(Connection& control) {
  if (control.value("SELECT to_regclass('lokadb.credentials')").empty())
    throw Failure{"database " + control.database() + " is no control plane: run lokadb init -control-plane first"};
}

void store_login(Connection& control, const std::string& key, const std::string& org, const std::string& kind,
                 const Login& login) {
  control.query(
      "INSERT INTO lokadb.credentials (org, kind, user_name, secret) VALUES ($1, $2, $3, $4::bytea) ON CONFLICT (org, "
      "kind)"
      " DO UPDATE SET user_name = excluded.user_name, secret = excluded.secret, changed_at = now()",
      {org, kind, login.user, encrypt(key, login.password, associated_data(org, kind, login.user))});
}

Login load_login(Connection& control, const std::string& key, const std::string& org, const std::string& kind) {
  Rows found =
      control.query("SELECT user_name, secret FROM lokadb.credentials WHERE org = $1 AND kind = $2", {org, kind});
  if (found.size() == 0)
    throw Failure{"the control plane has no " + kind + " credentials of organization " + org +
                  ": store them with lokadb org-credentials"};
  std::string user = found.get(0, 0);
  return {user, decrypt(key, found.get(0, 1), associated_data(org, kind, user))};
}

Login stored_login(const Flags& flags, const std::string& org, const std::string& kind) {
  if (!flags.has("control-plane") || !flags.has("key"))
    throw Failure{"-control-plane and -key are needed for the " + kind + " credentials of organization " + org, kUsage};
  std::string key = read_key_file(flags.get("key"));
  Connection control(flags.get("control-plane"), "lokadb");
  check_control_plane(control);
  return load_login(control, key, org, kind);
}

}  // namespace lokadb::cli
