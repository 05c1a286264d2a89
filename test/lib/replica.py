#!/usr/bin/python3
"""An outside replica for the tests: schedules until the table public.stop has a row, then prints what it admitted.

replica.py CONNINFO OWNER functions|procedure [LEASE_MS]
"""
import sys
import time

import psycopg

conninfo, owner, way = sys.argv[1:4]
lease = int(sys.argv[4]) if len(sys.argv) > 4 else 30000
admitted = retries = 0
con = psycopg.connect(conninfo, autocommit=True)
print('ready', flush=True)


def admit(claims):
    """The same claims again after a serialization failure: nothing was written."""
    global retries
    while True:
        try:
            con.execute('BEGIN ISOLATION LEVEL SERIALIZABLE')
            statuses = con.execute(
                'SELECT status FROM qinglong.ql_admit_batch(%s::text[]::qinglong.schedule_claim[])', [claims]).fetchall()
            con.execute('COMMIT')
            return statuses
        except psycopg.errors.SerializationFailure:
            con.rollback()  # a failed COMMIT has ended the transaction already
            retries += 1


while True:
    if way == 'procedure':
        summary = con.execute(
            'CALL qinglong.ql_schedule_once(%s, NULL, %s)', [owner, lease]).fetchone()[0]
        fields = summary.strip('()').split(',')
        claimed, done = int(fields[2]), int(fields[5])
    else:
        claims = [row[0] for row in con.execute(
            'SELECT c::text FROM qinglong.ql_claim(%s, %s, 16) c', [owner, lease]).fetchall()]
        claimed, done = len(claims), sum(s == ('admitted',) for s in admit(claims)) if claims else 0
    admitted += done
    if claimed == 0:
        if con.execute('SELECT count(*) FROM public.stop').fetchone()[0]:
            break
        time.sleep(0.02)
print(f'{owner} admitted {admitted} after {retries} repetitions', flush=True)
