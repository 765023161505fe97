// Why a batch runs nowhere, though each of its statements has been given a place: what the policy wants is not known,
// or what has been named for the session cannot be kept to.
#pragma once

#include <optional>
#include <vector>

#include "named.h"
#include "refusals.h"
#include "router.h"

namespace lokadb::router {

class Objections {
 public:
  // All outlive it.
  Objections(const Options& options, const lokadb_batch* batch, const lokadb_batch_info& info, const BatchState& state,
             const NamedFacts& named)
      : options_(options), batch_(batch), info_(info), state_(state), named_(named) {}

  // Nothing is known of the database (yet), or it has no tables under LokaDB.
  std::optional<Refusal> without_catalog() const;
  // The cloud's setting gets a value that no plugin has taken up: it would be overwritten with what is known here, and
  // the application would see rows of organizations that it has not named.
  std::optional<Refusal> to_naming(const Piece& piece) const;
  // verdicts: one for each piece.
  std::optional<Refusal> in_cloud(const std::vector<route::Verdict>& verdicts) const;

 private:
  bool may_name_behind_end() const;
  bool may_be_about_all(std::uint32_t statement) const;
  std::optional<Refusal> to_unread(std::uint32_t statement) const;
  bool is_rejected_unread(std::uint32_t statement) const;
  bool runs_unseen_query(const Piece& piece) const;
  bool names_behind_modes() const;
  bool names_behind_end(const std::vector<route::Verdict>& verdicts) const;
  // form: LOKADB_OTHER if the host does not have it.
  lokadb_statement statement(std::uint32_t index) const;
  bool is_simple(std::uint32_t index) const { return statement(index).form == LOKADB_SIMPLE; }
  const std::string& setting() const { return state_.known.catalog->setting(); }

  const Options& options_;
  const lokadb_batch* batch_;
  const lokadb_batch_info& info_;
  const BatchState& state_;
  const NamedFacts& named_;
};

}  // namespace lokadb::router
