#include "qinglong_sched/pg/datum.hpp"

namespace qinglong::pg {

Value value(std::string_view text) {
    return Value(pgcall([&] {
        return PointerGetDatum(cstring_to_text_with_len(text.data(), static_cast<int>(text.size())));
    }));
}

Value value(const std::optional<std::string>& text) {
    return text ? value(std::string_view(*text)) : Value();
}

Value value(const pg_uuid_t& id) {
    return Value(pgcall([&] {
        auto* const copy = static_cast<pg_uuid_t*>(palloc(sizeof(pg_uuid_t)));
        *copy = id;
        return UUIDPGetDatum(copy);
    }));
}

namespace {

// One pgcall for the whole array: make(i) may ereport and returns a Datum.
template<typename Make>
Value make_array(std::size_t count, Oid type, const Make& make) {
    return Value(pgcall([&] {
        auto* const datums = static_cast<Datum*>(palloc(sizeof(Datum) * (count + 1)));
        for (std::size_t i = 0; i < count; ++i)
            datums[i] = make(i);
        std::int16_t length;
        bool by_value;
        char align;
        get_typlenbyvalalign(type, &length, &by_value, &align);
        return PointerGetDatum(
            construct_array(datums, static_cast<int>(count), type, length, by_value, align));
    }));
}

} // namespace

Value array(const std::vector<std::string>& items) {
    return make_array(items.size(), TEXTOID, [&](std::size_t i) {
        return PointerGetDatum(cstring_to_text_with_len(items[i].data(), static_cast<int>(items[i].size())));
    });
}

Value array(const std::vector<std::int64_t>& items) {
    return make_array(items.size(), INT8OID, [&](std::size_t i) { return Int64GetDatum(items[i]); });
}

std::string to_string(Datum datum) {
    const text* const packed = pgcall([&] { return PG_DETOAST_DATUM_PACKED(datum); });
    return std::string(VARDATA_ANY(packed), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(packed)));
}

std::string json_text(Datum jsonb) {
    const char* const text = pgcall([&] {
        Jsonb* const value = DatumGetJsonbP(jsonb);
        return static_cast<const char*>(
            JsonbToCString(nullptr, &value->root, static_cast<int>(VARSIZE(value))));
    });
    return std::string(text);
}

Value empty_multirange(Oid type) {
    return Value(pgcall([&] {
        TypeCacheEntry* const range = lookup_type_cache(type, TYPECACHE_MULTIRANGE_INFO)->rngtype;
        return MultirangeTypePGetDatum(make_multirange(type, range, 0, nullptr));
    }));
}

bool is_empty_multirange(Datum multirange) {
    return pgcall([&] { return MultirangeIsEmpty(DatumGetMultirangeTypeP(multirange)); });
}

Value jsonb_value(std::string_view text) {
    return Value(pgcall([&] {
        char* const copy = pnstrdup(text.data(), text.size());
        return DirectFunctionCall1(jsonb_in, CStringGetDatum(copy));
    }));
}

std::string jsonb_bytes(Datum jsonb) {
    const auto* const plain = pgcall([&] { return PG_DETOAST_DATUM(jsonb); });
    return std::string(reinterpret_cast<const char*>(plain), static_cast<std::size_t>(VARSIZE(plain)));
}

Value jsonb_from_bytes(const std::string& bytes) {
    return Value(pgcall([&] {
        auto* const copy = static_cast<char*>(palloc(bytes.size()));
        std::memcpy(copy, bytes.data(), bytes.size());
        return PointerGetDatum(copy);
    }));
}

std::optional<std::string> maybe_text_argument(FunctionCallInfo fcinfo, int index) {
    if (PG_ARGISNULL(index))
        return std::nullopt;
    return to_string(PG_GETARG_DATUM(index));
}

std::string text_argument(FunctionCallInfo fcinfo, int index, const char* name) {
    auto text = maybe_text_argument(fcinfo, index);
    if (!text)
        throw SqlError{ERRCODE_INVALID_PARAMETER_VALUE, std::string(name) + " must not be null"};
    return std::move(*text);
}

Composite::Composite(Datum composite) {
    pgcall([&] {
        HeapTupleHeader const header = DatumGetHeapTupleHeader(composite);
        TupleDesc const desc =
            lookup_rowtype_tupdesc_copy(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
        HeapTupleData tuple;
        tuple.t_len = HeapTupleHeaderGetDatumLength(header);
        ItemPointerSetInvalid(&tuple.t_self);
        tuple.t_tableOid = InvalidOid;
        tuple.t_data = header;
        values_ = static_cast<Datum*>(palloc(sizeof(Datum) * static_cast<std::size_t>(desc->natts)));
        nulls_ = static_cast<bool*>(palloc(sizeof(bool) * static_cast<std::size_t>(desc->natts)));
        heap_deform_tuple(&tuple, desc, values_, nulls_);
    });
}

std::optional<std::string> Composite::string(int field) const {
    if (nulls_[field])
        return std::nullopt;
    return to_string(values_[field]);
}

std::optional<std::int64_t> Composite::bigint(int field) const {
    return nulls_[field] ? std::nullopt : std::optional<std::int64_t>(DatumGetInt64(values_[field]));
}

std::optional<std::int32_t> Composite::integer(int field) const {
    return nulls_[field] ? std::nullopt : std::optional<std::int32_t>(DatumGetInt32(values_[field]));
}

namespace {

Datum form(TupleDesc desc, std::span<const Value> fields) {
    if (desc->natts != static_cast<int>(fields.size()))
        elog(ERROR, "the function's result type is not the one of this library");
    auto* const values = static_cast<Datum*>(palloc(sizeof(Datum) * fields.size()));
    auto* const nulls = static_cast<bool*>(palloc(sizeof(bool) * fields.size()));
    for (std::size_t i = 0; i < fields.size(); ++i) {
        values[i] = fields[i].datum;
        nulls[i] = fields[i].null;
    }
    return HeapTupleGetDatum(heap_form_tuple(desc, values, nulls));
}

TupleDesc result_descriptor(FunctionCallInfo fcinfo) {
    TupleDesc desc;
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "the function's result type is not the one of this library");
    return BlessTupleDesc(desc);
}

} // namespace

Datum make_composite(FunctionCallInfo fcinfo, std::span<const Value> fields) {
    return pgcall([&] { return form(result_descriptor(fcinfo), fields); });
}

Datum make_output_composite(FunctionCallInfo fcinfo, std::span<const Value> fields) {
    return pgcall([&] {
        TupleDesc const outer = result_descriptor(fcinfo);
        const FormData_pg_attribute* const argument = TupleDescAttr(outer, 0);
        const Value inner(form(lookup_rowtype_tupdesc_copy(argument->atttypid, argument->atttypmod), fields));
        return form(outer, {&inner, 1});
    });
}

void begin_result_set(FunctionCallInfo fcinfo, bool scalar) {
    pgcall([&] { InitMaterializedSRF(fcinfo, scalar ? MAT_SRF_USE_EXPECTED_DESC : 0); });
}

void add_result_row(FunctionCallInfo fcinfo, std::span<const Value> fields) {
    pgcall([&] {
        auto* const info = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
        if (info->setDesc->natts != static_cast<int>(fields.size()))
            elog(ERROR, "the function's result type is not the one of this library");
        auto* const values = static_cast<Datum*>(palloc(sizeof(Datum) * fields.size()));
        auto* const nulls = static_cast<bool*>(palloc(sizeof(bool) * fields.size()));
        for (std::size_t i = 0; i < fields.size(); ++i) {
            values[i] = fields[i].datum;
            nulls[i] = fields[i].null;
        }
        tuplestore_putvalues(info->setResult, info->setDesc, values, nulls);
        pfree(values);
        pfree(nulls);
    });
}

namespace {

// Taken from the operating system for many ids at once; used bytes are not kept.
unsigned char pool[64 * UUID_LEN];
std::size_t pool_left = 0;

pg_uuid_t random_uuid(unsigned version) {
    if (pool_left == 0) {
        if (!pg_strong_random(pool, sizeof pool))
            throw SqlError{ERRCODE_INTERNAL_ERROR, "could not generate random values"};
        pool_left = sizeof pool;
    }
    pool_left -= UUID_LEN;
    pg_uuid_t id;
    std::memcpy(id.data, pool + pool_left, UUID_LEN);
    std::memset(pool + pool_left, 0, UUID_LEN);
    id.data[6] = static_cast<unsigned char>((id.data[6] & 0x0fU) | (version << 4U));
    id.data[8] = static_cast<unsigned char>((id.data[8] & 0x3fU) | 0x80U);
    return id;
}

} // namespace

pg_uuid_t new_uuid_v4() {
    return random_uuid(4);
}

pg_uuid_t new_uuid_v7() {
    // RFC 9562 with a sub-millisecond fraction in rand_a, so that ids made one after another also sort so.
    pg_uuid_t id = random_uuid(7);
    const std::int64_t us = GetCurrentTimestamp() + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
    const auto ms = static_cast<std::uint64_t>(us / 1000);
    const auto fraction = static_cast<std::uint64_t>(us % 1000) * 4096U / 1000U;
    for (int i = 0; i < 6; ++i)
        id.data[i] = static_cast<unsigned char>(ms >> (40 - 8 * i));
    id.data[6] = static_cast<unsigned char>(0x70U | (fraction >> 8U));
    id.data[7] = static_cast<unsigned char>(fraction & 0xffU);
    return id;
}

std::string uuid_text(const pg_uuid_t& id) {
    const char* const text = pgcall([&] {
        return static_cast<const char*>(DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(&id))));
    });
    return std::string(text);
}

std::string sha256_hex(std::string_view bytes) {
    std::uint8_t digest[PG_SHA256_DIGEST_LENGTH];
    pgcall([&] {
        pg_cryptohash_ctx* const hash = pg_cryptohash_create(PG_SHA256);
        if (hash == nullptr || pg_cryptohash_init(hash) < 0 ||
            pg_cryptohash_update(hash, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()) <
                0 ||
            pg_cryptohash_final(hash, digest, sizeof digest) < 0)
            elog(ERROR, "could not compute a SHA-256 digest");
        pg_cryptohash_free(hash);
    });
    static constexpr char kHex[] = "0123456789abcdef";
    std::string text;
    text.reserve(2 * sizeof digest);
    for (const std::uint8_t byte : digest) {
        text.push_back(kHex[byte >> 4U]);
        text.push_back(kHex[byte & 15U]);
    }
    return text;
}

namespace {
std::int64_t latest_ms = 0; // the latest reading of the clock in this process

constexpr std::int64_t kEpochShiftUs = (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;

std::int64_t floor_divide(std::int64_t number, std::int64_t by) {
    return number / by - ((number % by != 0 && number < 0) ? 1 : 0);
}
} // namespace

std::int64_t clock_ms() {
    const std::int64_t now = floor_divide(GetCurrentTimestamp() + kEpochShiftUs, 1000);
    if (now > latest_ms)
        latest_ms = now;
    return now;
}

bool clock_was_set_back(std::int64_t by_more_than_ms) {
    const std::int64_t now = clock_ms();
    if (latest_ms - now <= by_more_than_ms)
        return false;
    latest_ms = now;
    return true;
}

std::int64_t epoch_seconds(TimestampTz instant) {
    // Both parts floor to whole seconds, and the shift is a whole number of them.
    return floor_divide(instant, USECS_PER_SEC) + kEpochShiftUs / USECS_PER_SEC;
}

TimestampTz from_epoch_ms(std::int64_t ms) {
    return ms * 1000 - kEpochShiftUs;
}

std::int64_t finite_epoch_seconds_argument(FunctionCallInfo fcinfo, int index, const char* name) {
    if (PG_ARGISNULL(index))
        throw SqlError{ERRCODE_INVALID_PARAMETER_VALUE, std::string(name) + " must not be null"};
    const TimestampTz instant = PG_GETARG_TIMESTAMPTZ(index);
    if (TIMESTAMP_NOT_FINITE(instant))
        throw SqlError{ERRCODE_INVALID_PARAMETER_VALUE, std::string(name) + " must be finite"};
    return epoch_seconds(instant);
}

Value interval_value(std::int32_t seconds) {
    auto* const interval = pgcall([] { return static_cast<Interval*>(palloc0(sizeof(Interval))); });
    interval->time = seconds * USECS_PER_SEC;
    return Value(IntervalPGetDatum(interval));
}

} // namespace qinglong::pg
