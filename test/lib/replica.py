#!/usr/bin/python3
"""An outside replica for the tests: schedules until the table public.stop has a row, then prints what it admitted.

replica.py CONNINFO OWNER functions|single|procedure [LEASE_MS [patient]]
  functions   claims, and admits the claims as a batch
  single      claims, and admits each claim in a transaction of its own; COMMIT in the extended protocol
  procedure   calls ql_schedule_once
A lost connection leaves open what has been committed. It goes on with the next claim over a new one. A patient replica goes
on after any error, waits for a server that does not answer, and prints what it has met.
"""
import collections
import sys
import time

import psycopg

conninfo, owner, way = sys.argv[1:4]
lease = int(sys.argv[4]) if len(sys.argv) > 4 else 30000
patient = sys.argv[5:] == ['patient']
admitted = retries = reconnections = 0
errors = collections.Counter()
con = psycopg.connect(conninfo, autocommit=True)
print('ready', flush=True)


def admit(query, claims, extended):
    """How many were admitted. The same claims again after a serialization failure: nothing was written."""
    global retries
    while True:
        try:
            con.execute('BEGIN ISOLATION LEVEL SERIALIZABLE')
            statuses = con.execute(query, [claims]).fetchall()
            con.execute('COMMIT', binary=extended)
            return sum(s == ('admitted',) for s in statuses)
        except psycopg.errors.SerializationFailure:
            con.rollback()  # a failed COMMIT has ended the transaction already
            retries += 1


def cycle():
    """How many were claimed, and admitted."""
    if way == 'procedure':
        summary = con.execute(
            'CALL qinglong.ql_schedule_once(%s, NULL, %s)', [owner, lease]).fetchone()[0]
        fields = summary.strip('()').split(',')
        return int(fields[2]), int(fields[5])
    claims = [row[0] for row in con.execute(
        'SELECT c::text FROM qinglong.ql_claim(%s, %s, 16) c', [owner, lease]).fetchall()]
    if way == 'single':
        return len(claims), sum(
            admit('SELECT status FROM qinglong.ql_admit(%s::text::qinglong.schedule_claim)', claim, True) for claim in claims)
    return len(claims), claims and admit(
        'SELECT status FROM qinglong.ql_admit_batch(%s::text[]::qinglong.schedule_claim[])', claims, False) or 0


def recover():
    """The session as it was, or a new one."""
    global con, reconnections
    try:
        if not con.closed:
            con.rollback()
            con.execute('SELECT 1')
            return
    except psycopg.Error:
        con.close()
    while con.closed:
        try:
            con = psycopg.connect(conninfo, autocommit=True)
            reconnections += 1
        except psycopg.OperationalError as error:
            errors['too many clients' if 'too many clients' in str(error) else 'unreachable'] += 1
            time.sleep(0.1)


while True:
    try:
        claimed, done = cycle()
        admitted += done
        if claimed == 0:
            if con.execute('SELECT count(*) FROM public.stop').fetchone()[0]:
                break
            time.sleep(0.02)
    except psycopg.Error as error:
        if patient:
            errors[error.sqlstate or 'connection lost'] += 1
            recover()
            continue
        if not isinstance(error, psycopg.OperationalError) or not con.closed:
            raise
        con = psycopg.connect(conninfo, autocommit=True)
        reconnections += 1
print(f'{owner} admitted {admitted} after {retries} repetitions and {reconnections} reconnections', flush=True)
if patient:
    print('met:', ', '.join(f'{error} {count}' for error, count in sorted(errors.items())), flush=True)
