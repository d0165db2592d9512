"""Ranking data: LETOR files, normalisation within queries, and generated sets.

=================== =================================================================
`ranking_data`      the container that everything else takes and gives
`letor`             LETOR (SVMlight) text, checked line by line
`letor_cache`       binary copies of parsed text, mapped into memory
`normalization`     min-max normalisation of the features of each query
`generated`         seeded sets with the shapes of Yahoo!, MSLR-Web30k and Istella
=================== =================================================================
"""

from plrank_fast.data.generated import PROFILES, generate
from plrank_fast.data.letor import load_letor
from plrank_fast.data.normalization import normalize_queries
from plrank_fast.data.ranking_data import RankingData, concatenate

__all__ = ["PROFILES", "RankingData", "concatenate", "generate", "load_letor", "normalize_queries"]


def __dir__() -> list[str]:
    return __all__
