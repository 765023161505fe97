// PAM's side of outside_auth.h. libpam is safe with several threads as long as each has a handle of its own.
#include "auth/outside_auth.h"
#include "build_config.h"

#ifdef HAVE_PAM
#include <security/pam_appl.h>

#include <cstdlib>
#include <cstring>
#endif

namespace lokadb {

#ifdef HAVE_PAM

namespace {

// Frees what was answered so far, as the callee has to when it fails.
int give_up(pam_response* answers, int count) {
  for (int i = 0; i < count; ++i) std::free(answers[i].resp);
  std::free(answers);
  return PAM_CONV_ERR;
}

// A module asks: the password is the answer to every question that must not be seen on a screen. Texts meant for the
// user are dropped (nobody could show them), and any other question fails the login.
int converse(int count, const pam_message** messages, pam_response** out, void* password) {
  if (count <= 0 || count > PAM_MAX_NUM_MSG) return PAM_CONV_ERR;
  auto* answers = static_cast<pam_response*>(std::calloc(static_cast<std::size_t>(count), sizeof(pam_response)));
  if (answers == nullptr) return PAM_BUF_ERR;
  for (int i = 0; i < count; ++i) {
    switch (messages[i]->msg_style) {
      case PAM_PROMPT_ECHO_OFF:
        answers[i].resp = strdup(static_cast<const char*>(password));
        if (answers[i].resp == nullptr) return give_up(answers, count);
        break;
      case PAM_TEXT_INFO:
      case PAM_ERROR_MSG:
        break;
      default:
        return give_up(answers, count);
    }
  }
  *out = answers;
  return PAM_SUCCESS;
}

}  // namespace

bool has_pam() { return true; }

Result<Done> check_with_pam(const PamLogin& login) {
  pam_handle_t* handle = nullptr;
  std::string password = login.password;
  pam_conv conversation{&converse, password.data()};
  int result = pam_start(login.service.c_str(), login.user.c_str(), &conversation, &handle);
  if (result != PAM_SUCCESS) return fatal("pam_start() failed for service " + login.service);
  const char* step = "pam_set_item";
  if (!login.remote_host.empty()) result = pam_set_item(handle, PAM_RHOST, login.remote_host.c_str());
  if (result == PAM_SUCCESS) {
    step = "pam_authenticate";
    result = pam_authenticate(handle, PAM_SILENT);
  }
  if (result == PAM_SUCCESS) {
    step = "pam_acct_mgmt";
    result = pam_acct_mgmt(handle, PAM_SILENT);
  }
  std::string why = result == PAM_SUCCESS ? "" : std::string(step) + "() failed: " + pam_strerror(handle, result);
  pam_end(handle, result);
  if (!why.empty()) return fatal(std::move(why));
  return Done{};
}

#else

bool has_pam() { return false; }

Result<Done> check_with_pam(const PamLogin&) { return fatal("pam is not supported by this build"); }

#endif

}  // namespace lokadb
