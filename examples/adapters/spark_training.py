"""XGBoost trains with an objective of this library on Spark's workers: ``pip install ".[spark]"``, and Java."""

import os
import sys

import numpy as np
import pandas as pd
import xgboost
from pyspark.sql import SparkSession

import plrank_fast as plr
import plrank_fast.spark
import plrank_fast.xgboost

data = plr.data.generate("yahoo", 40, n_features=2)
table = pd.DataFrame(data.features, columns=["bm25", "clicks"]).assign(grade=data.labels, query=data.qid)

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of the workers
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.createDataFrame(table)
booster = plrank_fast.spark.train(
    frame,
    {"learning_rate": 0.1},
    100,
    obj=plrank_fast.xgboost.Objective(),
    n_workers=2,
    features=["bm25", "clicks"],
    label="grade",
    qid="query",
)
scores = booster.predict(xgboost.DMatrix(table[["bm25", "clicks"]]))
print(f"NDCG@10 {np.mean(plr.ndcg(scores, plr.gains(data.labels), cutoff=10, offsets=data.offsets)):.3f}")
spark.stop()
