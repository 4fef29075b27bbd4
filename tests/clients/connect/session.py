"""Uses a session of Spark Connect, with nothing but PySpark's own client. Prints lines that begin with RESULT."""

import json
import sys
import threading
import time
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, udf

spark = None if sys.argv[1] == "package" else SparkSession.builder.getOrCreate()


def result(name, value):
    print("RESULT", name, value, flush=True)


def work():
    result("sql", spark.sql("SELECT 40 + 2 AS answer").collect()[0].answer)
    result("dataframe", spark.range(1000).groupBy((col("id") % 7).alias("k")).count().filter("k = 0").collect()[0]["count"])
    doubled = udf(lambda n: n * 2, "long")
    result("udf", spark.range(100).select(doubled("id").alias("n")).agg({"n": "sum"}).collect()[0][0])
    spark.range(5).createOrReplaceTempView("five")
    try:
        spark.sql("SELECT * FROM nowhere").collect()
    except AnalysisException as error:
        result("error", error.getCondition())
    interrupted()
    # Results of tasks below 1 MiB come with the task's end.
    table = spark.range(0, 2_000_000, 1, 200).selectExpr("id", "repeat('x', 60) AS text").toArrow()
    result("large", f"{table.num_rows} {table.nbytes > 100_000_000}")


def interrupted():
    slow = udf(lambda n: time.sleep(60) or n, "long")
    ended = []

    def query():
        try:
            spark.range(2).select(slow("id")).collect()
        except Exception as error:
            ended.append("OPERATION_CANCELED" in str(error))

    thread = threading.Thread(target=query)
    thread.start()
    while not spark.interruptAll():
        time.sleep(0.2)
    thread.join()
    result("interrupt", ended[0])


def continued(marker):
    """Runs a query during which the gateway stops: the file says when it runs."""
    slow = udf(lambda n: time.sleep(20) or n, "long")
    query = spark.range(0, 10, 1, 1).filter("id = 3").select(slow("id").alias("n"))
    threading.Timer(8, Path(marker).touch).start()
    result("continued", query.collect()[0].n)
    result("same session", spark.sql("SELECT count(*) FROM five").collect()[0][0])


def message():
    try:
        spark.sql("SELECT 1").collect()
    except Exception as error:
        result("refused", str(error))


def package():
    """Does the same through the package of Sparkgate."""
    import sparkgate

    with sparkgate.session("block", conf={"spark.sql.shuffle.partitions": 2}, idle_timeout=60) as inner:
        result("package", inner.sql("SELECT 6 * 7 AS answer").collect()[0].answer)
        again = sparkgate.connect("block")
        result("used again", again.range(3).count())
    with sparkgate.Client() as client:
        sessions = json.loads(client.request("GET", "/v1/sessions", params={"all": True}))["items"]
    result("ended", [one["state"] for one in sessions if one["name"] == "block"])


if sys.argv[1] == "work":
    work()
elif sys.argv[1] == "package":
    package()
elif sys.argv[1] == "continued":
    spark.range(5).createOrReplaceTempView("five")
    continued(sys.argv[2])
elif sys.argv[1] == "message":
    message()
