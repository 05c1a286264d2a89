CREATE FUNCTION qinglong.ql_claim(owner_id text, lease_ms integer DEFAULT NULL, max_claims integer DEFAULT 1,
                                  claim_token uuid DEFAULT NULL)
RETURNS SETOF qinglong.schedule_claim
AS 'MODULE_PATHNAME', 'ql_claim'
LANGUAGE C VOLATILE ROWS 16;
COMMENT ON FUNCTION qinglong.ql_claim(text, integer, integer, uuid) IS
    'Leases up to max_claims due triggers (1..256) to owner_id for lease_ms milliseconds (1,000..60,000); commit before admitting';

CREATE FUNCTION qinglong.ql_decide(claim qinglong.schedule_claim)
RETURNS qinglong.schedule_decision
AS 'MODULE_PATHNAME', 'ql_decide'
LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION qinglong.ql_decide(qinglong.schedule_claim) IS
    'What a claim leads to; reads no table and no clock: "now" is the moment of the claim';

CREATE FUNCTION qinglong.ql_admit(claim qinglong.schedule_claim, decision qinglong.schedule_decision DEFAULT NULL)
RETURNS qinglong.schedule_admission
AS 'MODULE_PATHNAME', 'ql_admit'
LANGUAGE C VOLATILE;
COMMENT ON FUNCTION qinglong.ql_admit(qinglong.schedule_claim, qinglong.schedule_decision) IS
    'Turns a committed claim into a durable Run, or moves the cursor, under the full fence of the claim';

CREATE FUNCTION qinglong.ql_admit_batch(claims qinglong.schedule_claim[])
RETURNS SETOF qinglong.schedule_admission
AS 'MODULE_PATHNAME', 'ql_admit_batch'
LANGUAGE C VOLATILE ROWS 16;
COMMENT ON FUNCTION qinglong.ql_admit_batch(qinglong.schedule_claim[]) IS
    'Admits up to 256 claims in one transaction, each by itself; results in the order of the claims';

CREATE PROCEDURE qinglong.ql_schedule_once(IN owner_id text, INOUT summary qinglong.cycle_summary DEFAULT NULL,
                                           IN lease_ms integer DEFAULT NULL, IN max_claims integer DEFAULT NULL)
AS 'MODULE_PATHNAME', 'ql_schedule_once'
LANGUAGE C;
COMMENT ON PROCEDURE qinglong.ql_schedule_once(text, qinglong.cycle_summary, integer, integer) IS
    'One bounded scheduling cycle: claims, commits, decides, admits, commits; needs autocommit';
