// The plugin router: its entry, options and feed. See README.md.
#include "router.h"

#include <algorithm>
#include <memory>

#include "named.h"

namespace lokadb::router {

const lokadb_host* host = nullptr;

int fail(std::string_view text) { return host->fail("XX000", lent(text)); }

int add_step(lokadb_batch* batch, lokadb_moment moment, std::string_view sql, std::span<const lokadb_step_value> values,
             std::uint32_t statement) {
  lokadb_step step{};
  step.struct_size = sizeof step;
  step.moment = moment;
  step.sql = lent(sql);
  step.value_count = static_cast<std::uint32_t>(values.size());
  step.values = values.data();
  step.statement = statement;
  return host->add_step(batch, &step) == UINT32_MAX ? LOKADB_FAILED : LOKADB_OK;
}

void BatchState::start_anew() {
  constexpr std::size_t kMuch = 64;
  known = {};
  settings = nullptr;
  settings_step = UINT32_MAX;
  is_read = has_textless = calls_function = has_unread_portals = false;
  unread.clear();
  syntax_error.clear();
  not_direct = route::Reason::None;
  pieces.clear();
  verdicts.clear();
  wanted_index.clear();
  wanted.clear();
  told_about.clear();
  target = nullptr;
  for (std::size_t i = 0; i < values_used; ++i) values[i].prepared = nullptr;
  values_used = 0;
  if (values.size() <= kMuch) return;
  values.resize(kMuch);
  pieces = {};
  verdicts = {};
}

namespace {

std::string_view option(const lokadb_section* section, std::string_view name) {
  return view(host->option(section, lent(name)));
}

bool is_fingerprint(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

int take_options(Options& out, const lokadb_section* section) {
  std::string_view policy = option(section, "policy");
  if (policy != "allow" && policy != "reject") return fail("[router] policy is neither allow nor reject");
  out.rejects = policy == "reject";
  std::string_view list = option(section, "allow");
  while (!list.empty()) {
    std::size_t end = list.find_first_of(", \t");
    std::string_view word = list.substr(0, end);
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
    if (word.empty()) continue;
    if (!is_fingerprint(word))
      return fail("[router] allow: \"" + std::string(word) + "\" is no fingerprint (16 hexadecimal digits)");
    out.allowed.emplace(word);
  }
  out.control_user = option(section, "control_user");
  out.control_password = option(section, "control_password");
  if (out.control_user.empty()) {
    constexpr std::string_view kNoFeed =
        "router: [router] has no control_user, so nothing is known of any cloud database, and nothing is routed";
    host->log(1, lent(kNoFeed));
  }
  constexpr std::string_view kLogins = "customers_app";
  lokadb_string name{}, value{};
  for (std::uint32_t i = 0; host->line(section, lent(kLogins), i, &name, &value) == LOKADB_OK; ++i)
    if (std::string fault = out.logins.add(view(name), view(value)); !fault.empty())
      return fail("[customers_app]: " + fault);
  out.control_plane.dsn = option(section, "control_plane.dsn");
  out.control_plane.key_file = option(section, "control_plane.key_file");
  if (std::string fault = fault_of(out.control_plane); !fault.empty()) return fail(fault);
  return LOKADB_OK;
}

void follow_control_plane(Router& router) {
  if (!router.options.control_plane.is_wanted()) return;
  auto told = [&router](LoginMap logins) {
    router.stored_logins.replace(std::move(logins));
    router.targets.clear();
  };
  auto log = [](int level, const std::string& text) { host->log(level, lent("router: " + text)); };
  router.control_plane = std::make_unique<ControlPlane>(router.options.control_plane, told, log);
}

int init(const lokadb_section* section, void** self) {
  auto router = std::make_unique<Router>();
  if (take_options(router->options, section) != LOKADB_OK) return LOKADB_FAILED;
  follow_control_plane(*router);
  *self = router.release();
  return LOKADB_OK;
}

int reload(void* self, const lokadb_section* section) {
  Options next;
  if (take_options(next, section) != LOKADB_OK) return LOKADB_FAILED;
  Router& router = *static_cast<Router*>(self);
  const bool has_other_control_plane = !(next.control_plane == router.options.control_plane);
  router.options = std::move(next);
  if (has_other_control_plane) {
    // What the one before had is not for sure what this one has.
    router.control_plane.reset();
    router.stored_logins.replace({});
    follow_control_plane(router);
  } else if (router.control_plane != nullptr) {
    router.control_plane->refresh();
  }
  router.targets.clear();
  return LOKADB_OK;
}

void destroy(void* self) { delete static_cast<Router*>(self); }
void* session_begin(void*, lokadb_string, lokadb_string) { return new SessionState; }
void session_end(void*, void* slot) { delete static_cast<SessionState*>(slot); }

int inspect(void*, lokadb_batch* batch, lokadb_verdict*) {
  SessionState& session = *static_cast<SessionState*>(host->slot(batch));
  session.batch.start_anew();
  session.before = std::exchange(session.after, {});
  return split_queries(batch);
}

int decide_batch(void* self, lokadb_batch* batch, lokadb_verdict* verdict) {
  return decide(*static_cast<Router*>(self), batch, verdict);
}

int feed(void* self, lokadb_string, lokadb_feed* out) {
  const Options& options = static_cast<Router*>(self)->options;
  constexpr std::string_view kChannel = "lokadb";
  out->user = lent(options.control_user);
  out->password = lent(options.control_password);
  out->channel = lent(kChannel);
  out->query = lent(catalog::kCatalogQuery);
  return LOKADB_OK;
}

void feed_changed(void* self, lokadb_string database, lokadb_string value, int is_fresh) {
  Router& router = *static_cast<Router*>(self);
  std::string fault = router.catalogs.changed(view(database), view(value), is_fresh != 0);
  router.role_settings.outdate(view(database));
  router.targets.clear();
  router.analyses.forget_stale(view(database), router.catalogs.find(view(database)).catalog);
  if (fault.empty()) return;
  std::string text = "router: the catalog of " + std::string(view(database)) + " cannot be read: " + fault;
  host->log(0, lent(text));
}

const lokadb_option kOptions[] = {
    {"policy", "allow", "What becomes of a statement on LokaDB tables that names no organization: allow or reject."},
    {"allow", "", "Fingerprints of statements that are allowed under policy = reject, separated by commas."},
    {"control_user", "", "Role of the router's own connection to each cloud database; see lokadb init -control-user."},
    {"control_password", "", "Its password."},
};

const lokadb_option kCustomersApp[] = {
    {"user", nullptr, "Role of direct connections, in every organization that has no login of its own."},
    {"password", nullptr, "Its password."},
};

const lokadb_option kControlPlane[] = {
    {"dsn", nullptr, "Connection string of the control plane, whose logins of kind direct are used."},
    {"key_file", nullptr, "The control plane's key file, made by lokadb keygen; nobody else may read it."},
};

const lokadb_more_section kMore[] = {{"customers_app", kCustomersApp, std::size(kCustomersApp), 1},
                                     {"control_plane", kControlPlane, std::size(kControlPlane), 0}};

std::vector<lokadb_reason> make_reasons() {
  std::vector<lokadb_reason> out;
  for (const route::ReasonInfo& r : route::reasons()) out.push_back({r.id.data(), r.text.data()});
  return out;
}

lokadb_plugin make_plugin() {
  static const std::vector<lokadb_reason> reasons = make_reasons();
  lokadb_plugin p{};
  p.struct_size = sizeof p;
  p.abi_major = LOKADB_ABI_MAJOR;
  p.abi_minor = LOKADB_ABI_MINOR;
  p.name = "router";
  p.version = "1.0";
  p.options = kOptions;
  p.option_count = std::size(kOptions);
  p.reasons = reasons.data();
  p.reason_count = static_cast<std::uint32_t>(reasons.size());
  p.init = init;
  p.reload = reload;
  p.destroy = destroy;
  p.session_begin = session_begin;
  p.session_end = session_end;
  p.inspect = inspect;
  p.decide = decide_batch;
  p.feed = feed;
  p.feed_changed = feed_changed;
  p.sections = kMore;
  p.section_count = std::size(kMore);
  p.shows = kShows;
  p.show_count = std::size(kShows);
  p.show = show;
  p.session_state = session_state;
  return p;
}

}  // namespace

}  // namespace lokadb::router

const lokadb_plugin* lokadb_plugin_entry(const lokadb_host* the_host) {
  lokadb::router::host = the_host;
  static const lokadb_plugin plugin = lokadb::router::make_plugin();
  return &plugin;
}
