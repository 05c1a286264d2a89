-- Readiness: is this database what the install script left, and may it schedule?

CREATE FUNCTION qinglong._catalog_findings(OUT code text, OUT finding text)
RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT NULL::text, NULL::text WHERE false;
END;
COMMENT ON FUNCTION qinglong._catalog_findings() IS 'Internal: how the catalogue differs from what was shipped';
