-- Background workers start within seconds of the commit.
SELECT qinglong._wake_launcher();
