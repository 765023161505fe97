#include "plugin/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>

#include "base/text.h"
#include "plugin/abi.h"
#include "plugin/call.h"
#include "plugin/host_calls.h"

namespace lokadb {

namespace {

constexpr char kEntrySymbol[] = "lokadb_plugin_entry";
constexpr std::uint32_t kMostRows = 10'000;  // of a table of options, reasons or sections
constexpr std::string_view kOwnSections[] = {"pgbouncer", "databases", "users", "peers"};

bool consists_of(std::string_view text, bool (*is_allowed)(char)) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_allowed);
}

bool is_low_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool is_own_section(std::string_view name) {
  return std::find(std::begin(kOwnSections), std::end(kOwnSections), name) != std::end(kOwnSections);
}

// Whether a table may have so many rows at this place.
std::string fault_of_rows(const char* what, const void* rows, std::uint32_t count) {
  if (count > kMostRows) return format("has %u %s", count, what);
  if (rows == nullptr && count > 0) return format("has %u %s at address 0", count, what);
  return {};
}

std::string fault_of_options(const lokadb_option* options, std::uint32_t count, bool is_own) {
  if (auto fault = fault_of_rows("options", options, count); !fault.empty()) return fault;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (options[i].name == nullptr || *options[i].name == '\0') return "has an option without a name";
    std::string name = options[i].name;
    if (options[i].text == nullptr) return "has no text for option " + name;
    if (name.find('.') != std::string::npos) return "has a dot in the name of option " + name;
    if (is_own && (name == kLibraryOption || name == kRequiredOption))
      return "declares option " + name + ", which is the proxy's";
    if (find_plugin_option(options, i, name) != nullptr) return "declares option " + name + " twice";
  }
  return {};
}

std::string fault_of_sections(const lokadb_plugin& p) {
  if (auto fault = fault_of_rows("sections", p.sections, p.section_count); !fault.empty()) return fault;
  for (std::uint32_t i = 0; i < p.section_count; ++i) {
    const lokadb_more_section& s = p.sections[i];
    if (s.name == nullptr || !is_plugin_name(s.name)) return "declares a section whose name cannot be one";
    if (std::strcmp(s.name, p.name) == 0)
      return std::string("declares its own section ") + s.name + " as a further one";
    for (std::uint32_t k = 0; k < i; ++k)
      if (std::strcmp(s.name, p.sections[k].name) == 0) return std::string("declares section ") + s.name + " twice";
    if (auto fault = fault_of_options(s.options, s.option_count, false); !fault.empty())
      return fault + " (section " + s.name + ")";
  }
  return {};
}

std::string fault_of_reasons(const lokadb_plugin& p) {
  if (auto fault = fault_of_rows("reasons", p.reasons, p.reason_count); !fault.empty()) return fault;
  for (std::uint32_t i = 0; i < p.reason_count; ++i) {
    const lokadb_reason& r = p.reasons[i];
    if (r.id == nullptr || !consists_of(r.id, [](char c) { return is_low_or_digit(c) || c == '-'; }))
      return format("has reason %u without an id of a-z, 0-9 and -", i);
    if (r.text == nullptr || *r.text == '\0') return std::string("has no text for reason ") + r.id;
    for (std::uint32_t k = 0; k < i; ++k)
      if (std::strcmp(r.id, p.reasons[k].id) == 0) return std::string("has reason ") + r.id + " twice";
  }
  return {};
}

// "name t, other q"
bool are_columns(std::string_view text) {
  while (true) {
    std::size_t end = std::min(text.find(", "), text.size());
    std::string_view column = text.substr(0, end);
    auto is_name = [](char c) { return is_low_or_digit(c) || c == '_'; };
    if (column.size() < 3 || column[column.size() - 2] != ' ' || std::string_view("tiq").find(column.back()) > 2 ||
        !consists_of(column.substr(0, column.size() - 2), is_name))
      return false;
    if (end == text.size()) return true;
    text.remove_prefix(end + 2);
  }
}

std::string fault_of_shows(const lokadb_plugin& p) {
  if (auto fault = fault_of_rows("SHOW commands", p.shows, p.show_count); !fault.empty()) return fault;
  if (p.show_count > 0 && p.show == nullptr) return "has SHOW commands, but no function show";
  for (std::uint32_t i = 0; i < p.show_count; ++i) {
    const lokadb_show& s = p.shows[i];
    if (s.name == nullptr || !consists_of(s.name, [](char c) { return is_low_or_digit(c) || c == '_'; }))
      return format("has SHOW command %u without a name of a-z, 0-9 and _", i);
    if (s.columns == nullptr || !are_columns(s.columns))
      return std::string("has columns for SHOW ") + s.name + " that are none";
    for (std::uint32_t k = 0; k < i; ++k)
      if (std::strcmp(s.name, p.shows[k].name) == 0) return std::string("has SHOW ") + s.name + " twice";
  }
  return {};
}

std::string fault_of_version(const lokadb_plugin& p) {
  if (p.abi_major == LOKADB_ABI_MAJOR && p.abi_minor <= LOKADB_ABI_MINOR) return {};
  return format("is made for version %u.%u of the plugin interface; this proxy has %d.%d%s", p.abi_major, p.abi_minor,
                LOKADB_ABI_MAJOR, LOKADB_ABI_MINOR, p.abi_major == LOKADB_ABI_MAJOR ? " and is too old for it" : "");
}

lokadb_plugin copy_of(const lokadb_plugin& given) {
  lokadb_plugin copy{};
  std::memcpy(static_cast<void*>(&copy), &given, std::min<std::size_t>(given.struct_size, sizeof copy));
  return copy;
}

}  // namespace

bool is_plugin_name(std::string_view name) {
  return !is_own_section(name) && consists_of(name, [](char c) { return is_low_or_digit(c) || c == '_'; });
}

std::string fault_of_table(const lokadb_plugin* given, std::string_view name) {
  // Size and version stand in front of all else in every version.
  if (given->struct_size < offsetof(lokadb_plugin, name))
    return format("has a table of %u bytes, which no version has", given->struct_size);
  if (auto fault = fault_of_version(*given); !fault.empty()) return fault;
  if (given->struct_size < first_size<lokadb_plugin>() || given->struct_size > sizeof(lokadb_plugin))
    return format("has a table of %u bytes, which no version has", given->struct_size);
  lokadb_plugin p = copy_of(*given);
  if (p.name == nullptr) return "has no name";
  if (name != p.name) return std::string("is plugin \"") + p.name + "\"";
  if (p.version == nullptr || *p.version == '\0') return "has no version";
  if (p.session_end != nullptr && p.session_begin == nullptr) return "has session_end, but no session_begin";
  if ((p.feed == nullptr) != (p.feed_changed == nullptr)) return "has only one of feed and feed_changed";
  if (auto fault = fault_of_options(p.options, p.option_count, true); !fault.empty()) return fault;
  if (auto fault = fault_of_sections(p); !fault.empty()) return fault;
  if (auto fault = fault_of_shows(p); !fault.empty()) return fault;
  return fault_of_reasons(p);
}

std::string PluginLibrary::ask_for_table(std::string_view name) {
  using Entry = const lokadb_plugin* (*)(const lokadb_host*);
  auto entry = reinterpret_cast<Entry>(dlsym(handle_, kEntrySymbol));
  if (entry == nullptr) return std::string("has no function ") + kEntrySymbol;
  PluginCall call(PluginEntry::Entry, name, nullptr, {});
  const lokadb_plugin* given = nullptr;
  try {
    given = entry(plugin_host());
  } catch (const std::exception& e) {
    call.fault(std::string("threw an exception: ") + e.what());
  } catch (...) {
    call.fault("threw an exception");
  }
  if (call.failure) return "refused to be loaded: " + call.failure->text;
  if (given == nullptr) return "refused to be loaded without saying why";
  if (auto fault = fault_of_table(given, name); !fault.empty()) return fault;
  table_ = copy_of(*given);
  return {};
}

Result<PluginLibrary> PluginLibrary::open(const std::string& path, std::string_view name) {
  auto refused = [&](const std::string& why) {
    return fatal("cannot load plugin \"" + std::string(name) + "\": " + why);
  };
  PluginLibrary library;
  library.handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle_ == nullptr) {
    const char* why = dlerror();  // which names the file most of the time
    std::string text = why != nullptr ? why : "dlopen failed";
    return refused(text.find(path) != std::string::npos ? text : path + ": " + text);
  }
  if (auto fault = library.ask_for_table(name); !fault.empty()) return refused(path + " " + fault);
  return library;
}

PluginLibrary::~PluginLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

}  // namespace lokadb
