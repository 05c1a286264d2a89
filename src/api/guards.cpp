// Table triggers: what is immutable stays so, and a change that makes triggers ineligible reaches their
// schedule rows in the same transaction.

#include "qinglong_sched/store/eligibility.hpp"

using namespace qinglong;

namespace {

TriggerData* trigger_data(FunctionCallInfo fcinfo) {
    if (!CALLED_AS_TRIGGER(fcinfo))
        throw pg::SqlError{ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED, "function is only for triggers"};
    return reinterpret_cast<TriggerData*>(fcinfo->context);
}

// The new row of an UPDATE.
class NewRow {
  public:
    explicit NewRow(FunctionCallInfo fcinfo) : data_(trigger_data(fcinfo)) {
        if (!TRIGGER_FIRED_BY_UPDATE(data_->tg_event) || !TRIGGER_FIRED_FOR_ROW(data_->tg_event))
            throw pg::SqlError{ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                               "function is only for row triggers on update"};
    }
    Datum datum(const char* column) const {
        return pg::pgcall([&] {
            const AttrNumber number = get_attnum(RelationGetRelid(data_->tg_relation), column);
            bool null = true;
            const Datum value =
                number == InvalidAttrNumber
                    ? Datum{0}
                    : heap_getattr(data_->tg_newtuple, number, RelationGetDescr(data_->tg_relation), &null);
            if (null)
                elog(ERROR, "column \"%s\" has no value", column);
            return value;
        });
    }
    std::string string(const char* column) const { return pg::to_string(datum(column)); }
    std::int32_t integer(const char* column) const { return DatumGetInt32(datum(column)); }
    Datum result() const { return PointerGetDatum(data_->tg_newtuple); }

  private:
    TriggerData* data_;
};

} // namespace

QL_FUNCTION(ql_refuse_change) {
    const TriggerData* const data = trigger_data(fcinfo);
    const char* const verb = TRIGGER_FIRED_BY_UPDATE(data->tg_event)   ? "update"
                             : TRIGGER_FIRED_BY_DELETE(data->tg_event) ? "delete from"
                                                                       : "truncate";
    const std::string table = RelationGetRelationName(data->tg_relation);
    throw pg::SqlError{ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                       std::string("cannot ") + verb + " table \"" + table + "\"", "Its rows are immutable.",
                       table == "run_events" ? "Append another event instead."
                                             : "Publish another revision instead."};
}

QL_FUNCTION(ql_sweep_trigger) {
    const NewRow row(fcinfo);
    pg::with_spi([&] {
        store::sweep_trigger(row.string("project_id"), row.string("trigger_id"),
                             row.integer("current_revision"));
    });
    return row.result();
}

QL_FUNCTION(ql_sweep_task) {
    const NewRow row(fcinfo);
    pg::with_spi([&] {
        store::sweep_task(row.string("project_id"), row.string("task_id"), row.integer("current_revision"));
    });
    return row.result();
}

QL_FUNCTION(ql_sweep_project) {
    const NewRow row(fcinfo);
    pg::with_spi([&] { store::sweep_project(row.string("id"), row.string("status") == "active"); });
    return row.result();
}
