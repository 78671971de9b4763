"""Descriptions of the data sets."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tessella.datasets._dataset import CLASSIFICATION, REGRESSION, TASKS

_UCI = "UCI Machine Learning Repository"
_LIBSVM = "LIBSVM data sets"
_STATLIB = "StatLib"
_UCI_LICENCE = "CC BY 4.0 by the general terms of UCI; the data set states no licence of its own"
_NO_LICENCE = "none stated"
_TARGET = "target"


@dataclass(frozen=True)
class OpenMLCopy:
    """Copy of a data set on OpenML, and the meaning of its columns.

    Attributes
    ----------
    data_id : int
        Identifier of the data set on openml.org.
    evidence : str
        Evidence that the identifier is correct. The identifiers have not been tried with the
        server, but every download is verified by a checksum.
    target : str
        Name of the column with the target.
    positive : tuple of str
        Labels that belong to the class +1. It is empty if the target is numeric.
    codes : mapping
        Numbers that replace the categories of a column, by the name of the column.
    """

    data_id: int
    evidence: str
    target: str
    positive: tuple[str, ...] = ()
    codes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetInfo:
    """Description of a data set.

    Attributes
    ----------
    name : str
        Name by which the data set is loaded.
    title : str
        Name of the data set in the paper.
    task : {"classification", "regression"}
        Task that the target belongs to.
    shape : tuple of int
        Number of rows and number of features.
    source : str
        Source of the data set.
    licence : str
        Licence of the data set.
    citation : str
        Publication to cite.
    target_rule : str
        Definition of the target in terms of the columns of the file.
    checksum : str
        SHA-256 of the sorted rows of the file (features followed by the target) as little-endian
        float64. It depends neither on the order of the rows nor on the notation of the numbers.
    target : str
        Name of the column with the target.
    threshold : float
        In a classification, the smallest value of the target column that belongs to class 1.
    file : str
        Name of the file without ``.csv.gz``, if several data sets share a file.
    left_out : tuple of str
        Names of columns that are not features.
    years : tuple of int
        Number of rows for each year, in order, if the year is a feature that is not in the file.
    paper_unit : float
        Unit of the target in the paper. The errors in the paper are squares of this unit.
    note : str
        Remarks on the data set.
    openml : OpenMLCopy or None
        Copy on OpenML, or None if no copy is known.
    """

    name: str
    title: str
    task: str
    shape: tuple[int, int]
    source: str
    licence: str
    citation: str
    target_rule: str
    checksum: str
    target: str = _TARGET
    threshold: float = 0.0
    file: str = ""
    left_out: tuple[str, ...] = ()
    years: tuple[int, ...] = ()
    paper_unit: float = 1.0
    note: str = ""
    openml: OpenMLCopy | None = None

    @property
    def file_stem(self) -> str:
        """Name of the file without its suffix."""
        return self.file or self.name


_PAGE = "public pages name the data set with this identifier and this number of rows"
_PMLB = "PMLB, which uses the identifiers of OpenML, names it with this identifier"
_FROM_LISTS = "published lists contain the identifier, but without the name of the data set"

_TURBINE_YEARS = (7411, 7628, 7152, 7158, 7384)  # 2011 to 2015

_ALL = (
    DatasetInfo(
        name="liver",
        title="Liver",
        task=CLASSIFICATION,
        shape=(345, 6),
        source=_UCI,
        licence=_UCI_LICENCE,
        citation="McDermott and Forsyth (2016), Diagnosing a disorder in a classification "
        "benchmark, Pattern Recognition Letters 73",
        target_rule="selector 2 is class 1",
        checksum="579e055e167ae76fe8b7c65dd8e6a96352aa00887df45f9f1728e710ffa32dc2",
        note="The label is widely misused: the selector divides the rows into training and test "
        "rows and is not a diagnosis. Use the data set to measure times, not accuracies.",
        openml=OpenMLCopy(8, _PAGE, "selector", ("2",)),
    ),
    DatasetInfo(
        name="cancer_wbc",
        title="Cancer",
        task=CLASSIFICATION,
        shape=(683, 9),
        source=f"{_UCI}, Breast Cancer Wisconsin (Original)",
        licence=_UCI_LICENCE,
        citation="Mangasarian and Wolberg (1990), Cancer diagnosis via linear programming",
        target_rule="malignant (4) is class 1; the 16 rows with a missing value are removed",
        checksum="f710bc0493f69b4d4bfd73ebe649643fde74087654a54ca809ea3cb66625aabc",
        openml=OpenMLCopy(15, _PAGE, "Class", ("malignant",)),
    ),
    DatasetInfo(
        name="heart",
        title="Heart",
        task=CLASSIFICATION,
        shape=(270, 13),
        source=f"{_UCI}, Statlog (Heart)",
        licence=_UCI_LICENCE,
        citation="no publication",
        target_rule="disease present (2) is class 1",
        checksum="71a1e5273c86fd51b28a70baa5465df79c56ff0113a4e6fc7ce46cc5ece4364a",
        openml=OpenMLCopy(53, _PAGE, "class", ("present", "2")),
    ),
    DatasetInfo(
        name="pima",
        title="Pima",
        task=CLASSIFICATION,
        shape=(768, 8),
        source=f"{_UCI} (withdrawn there)",
        licence=_NO_LICENCE,
        citation="no publication",
        target_rule="diabetes is class 1",
        checksum="2f0b33112fac08f0df7294b7debcd4079dc53d6a96cd6696807bbaf6be40c9b7",
        note="Zeros in five columns are missing values. As usual, they are kept as zeros.",
        openml=OpenMLCopy(37, _PAGE, "class", ("tested_positive",)),
    ),
    DatasetInfo(
        name="hill_valley",
        title="Hill Valley",
        task=CLASSIFICATION,
        shape=(1212, 100),
        source=f"{_UCI}, the two files without noise",
        licence=_UCI_LICENCE,
        citation="no publication",
        target_rule="hill is class 1",
        checksum="724bc683ed1ca6b0b74bfcca2b12d685f98acf9eb13ed7452dd4d8e2e3bc479d",
        note="The paper does not say whether it uses the version with or without noise; both "
        "versions have 1,212 rows in two files. Each row has a scale of its own.",
        openml=OpenMLCopy(
            1479,
            "public pages name the data set with this identifier; whether it contains noise is "
            "not known, but the checksum would detect it",
            "Class",
            ("1",),
        ),
    ),
    DatasetInfo(
        name="shill_bidding",
        title="Shill Bid",
        task=CLASSIFICATION,
        shape=(6321, 9),
        source=_UCI,
        licence=_UCI_LICENCE,
        citation="Alzahrani and Sadaoui (2018), Scraping and preprocessing commercial auction data "
        "for fraud classification; (2020), Clustering and labeling auction fraud data",
        target_rule="Class 1, shill bidding, is class 1",
        checksum="86b711c5491506499ae2ada2627188d46cd4d11808061eb3cd846a77a6f71ee2",
        note="The identifiers of record, auction and bidder are not features.",
    ),
    DatasetInfo(
        name="abalone",
        title="Abalone",
        task=CLASSIFICATION,
        shape=(4177, 8),
        source=_UCI,
        licence=_UCI_LICENCE,
        citation="Waugh (1995), Extending and benchmarking Cascade-Correlation",
        target_rule="at least 9 rings, mature, is class 1",
        threshold=9.0,
        checksum="49f883be483a8e271587dbbe61db0a82fb10c203fec3d926cfbcdb4a05a58f6c",
        note="Sex is encoded in one column: M is 1, F is 2, I is 3.",
        openml=OpenMLCopy(
            183,
            _PAGE,
            "Class_number_of_rings",
            codes={"Sex": {"M": 1.0, "F": 2.0, "I": 3.0}},
        ),
    ),
    DatasetInfo(
        name="transfusion",
        title="Transfusion",
        task=CLASSIFICATION,
        shape=(748, 4),
        source=_UCI,
        licence=_UCI_LICENCE,
        citation="Yeh, Yang and Ting (2009), Knowledge discovery on RFM model using Bernoulli "
        "sequence, Expert Systems with Applications 36",
        target_rule="blood given in March 2007 is class 1",
        checksum="7822dee74302094fab0ecaaa2305fac68e5c3e119c7d10a453800ab9f7ede262",
        note="Two features are multiples of each other, and some equal rows have different labels.",
        openml=OpenMLCopy(1464, _PAGE, "Class", ("2",)),
    ),
    DatasetInfo(
        name="german_numer",
        title="German",
        task=CLASSIFICATION,
        shape=(1000, 24),
        source=f"{_LIBSVM}, german.numer; from UCI, Statlog (German Credit)",
        licence=_UCI_LICENCE,
        citation="no publication",
        target_rule="bad (2) is class 1",
        checksum="6a8cbb4bc0ac3c99fcd1e352a41f4386faa5c5701b52e49287847844a3337136",
        note="The data set credit-g (31) on OpenML has the twenty original columns and differs.",
    ),
    DatasetInfo(
        name="fourclass",
        title="FourClass",
        task=CLASSIFICATION,
        shape=(862, 2),
        source=_LIBSVM,
        licence=_NO_LICENCE,
        citation="Ho and Kleinberg (1996), Building projectable classifiers of arbitrary "
        "complexity",
        target_rule="label +1 is class 1",
        checksum="d32716edea364790e728ef16b781cc3bb8f4f373c6ec6c52ca88c0c9fc1afe92",
    ),
    DatasetInfo(
        name="gas_turbine",
        title="Gas Turbine",
        task=REGRESSION,
        shape=(36733, 11),
        source=_UCI,
        licence=_UCI_LICENCE,
        citation="Kaya, Tüfekci and Uzun (2019), Predicting CO and NOx emissions from gas turbines",
        target_rule="turbine energy yield TEY (MWh) from the eight other sensors, CO, NOX and the "
        "year",
        target="TEY",
        years=_TURBINE_YEARS,
        checksum="4d948aacaf04219a90537f59cc8b5f1a2ff1487c7b7de64c31601669b13f0922",
        note="The paper does not name the target. With this target there are n = 11 features as "
        "in the paper, and the errors agree: on one division, XGBoost has an error of 0.31 and a "
        "random forest of 0.37 (0.33 and 0.38 in the paper). With CO as the target the errors are "
        "0.8 to 1.0, and with NOX 11 to 17, with or without the year and the other emission.",
    ),
    DatasetInfo(
        name="gas_turbine_nox",
        title="Gas Turbine (NOX)",
        task=REGRESSION,
        shape=(36733, 9),
        source=_UCI,
        licence=_UCI_LICENCE,
        citation="Kaya, Tüfekci and Uzun (2019), Predicting CO and NOx emissions from gas turbines",
        target_rule="NOX (mg/m³) from the nine sensors; CO, the other emission, is not a feature",
        target="NOX",
        file="gas_turbine",
        left_out=("CO",),
        checksum="4d948aacaf04219a90537f59cc8b5f1a2ff1487c7b7de64c31601669b13f0922",
        note="This data set is not in the paper. It is the task for which the data were collected.",
    ),
    DatasetInfo(
        name="airfoil",
        title="Airfoil",
        task=REGRESSION,
        shape=(1503, 5),
        source=_UCI,
        licence=_UCI_LICENCE,
        citation="Brooks, Pope and Marcolini (1989), Airfoil self-noise and prediction",
        target_rule="scaled sound pressure level (dB)",
        checksum="165e459637cd0c7ec1bccd62a6c20758aae2e4d9b8cdf38cba7da4a89a966911",
        openml=OpenMLCopy(44957, _FROM_LISTS, "sound_pressure"),
    ),
    DatasetInfo(
        name="ccpp",
        title="CCPP",
        task=REGRESSION,
        shape=(9568, 4),
        source=_UCI,
        licence=_UCI_LICENCE,
        citation="Tüfekci (2014), Prediction of full load electrical power output of a base load "
        "operated combined cycle power plant; Kaya, Tüfekci and Gürgen (2012), Local and global "
        "learning methods for predicting power of a combined gas & steam turbine",
        target_rule="net hourly output PE (MW)",
        checksum="de02023f4e7f10d6743e3b661e4b02f0459e8d190e83ea3ed50e0e4fb414da4b",
    ),
    DatasetInfo(
        name="cadata",
        title="CA",
        task=REGRESSION,
        shape=(20640, 8),
        source=f"{_LIBSVM}, cadata; from {_STATLIB}, houses",
        licence=_NO_LICENCE,
        citation="Pace and Barry (1997), Sparse spatial autoregressions",
        target_rule="median house value (US dollars)",
        paper_unit=485_002.0,
        checksum="b62f243fc9b4ab9e32619f4c4611ba6d60575c544bd04a7134988ffb2148447a",
        note="The errors in the paper (0.009 to 0.012) belong to a target scaled to [0, 1], so the "
        "unit is the range of the target, 485,002 dollars. With the cap of 500,001 dollars as the "
        "unit, the errors would be 6 % smaller.",
        openml=OpenMLCopy(537, _PAGE, "median_house_value"),
    ),
    DatasetInfo(
        name="space_ga",
        title="Space",
        task=REGRESSION,
        shape=(3107, 6),
        source=f"{_LIBSVM}, space_ga; from {_STATLIB}",
        licence=_NO_LICENCE,
        citation="Pace and Barry (1997), Quick computation of spatial autoregressive estimators",
        target_rule="logarithm of the votes per inhabitant",
        checksum="a12775a9a69b519fe0b8ffa31bab9e6c90a183e22481a4920a22c1a7c6ea5b20",
        note="The paper states n = 12 and m = 6,550, which is the shape of cpusmall. Its errors of "
        "0.013 to 0.019 and its reference, however, belong to this data set.",
        openml=OpenMLCopy(507, _PAGE, "ln_votes_pop"),
    ),
    DatasetInfo(
        name="cpusmall",
        title="cpusmall",
        task=REGRESSION,
        shape=(8192, 12),
        source=f"{_LIBSVM}, cpusmall; from DELVE, comp-activ",
        licence=_NO_LICENCE,
        citation="no publication",
        target_rule="percentage of time in user mode",
        checksum="62b8c9fbe231e1f25e7db4053d5b08e88ca92810f316ff0d10aa66b45c6f7a61",
        note='The paper does not name this data set, but states its shape in the row "Space".',
        openml=OpenMLCopy(227, _PMLB, "usr"),
    ),
    DatasetInfo(
        name="boston",
        title="Boston Housing",
        task=REGRESSION,
        shape=(506, 13),
        source=f"{_LIBSVM}, housing; from {_STATLIB}",
        licence=_NO_LICENCE,
        citation="Harrison and Rubinfeld (1978), Hedonic prices and the demand for clean air",
        target_rule="median value of homes (1,000 US dollars)",
        checksum="fd87e47646e384f7ff6c76ebe85c988b5690f797e804708235d3fecdfcb9ceb9",
        note="One column is computed from the share of Black inhabitants, based on an assumption "
        "that has been rejected since. UCI and scikit-learn have withdrawn the data set.",
        openml=OpenMLCopy(531, _PAGE, "MEDV"),
    ),
)

REGISTRY: Mapping[str, DatasetInfo] = {info.name: info for info in _ALL}


def names(task: str | None = None) -> tuple[str, ...]:
    """Return the names of the data sets of the registry.

    Parameters
    ----------
    task : {"classification", "regression"}, optional
        Task of the data sets to return. By default, the data sets of both tasks are returned.

    Returns
    -------
    tuple of str
        Names of the sixteen data sets of the paper, and of `cpusmall` and `gas_turbine_nox`.

    Examples
    --------
    >>> from tessella.datasets import names
    >>> names("regression")[:3]
    ('gas_turbine', 'gas_turbine_nox', 'airfoil')
    """
    if task is not None and task not in TASKS:
        raise ValueError(f"task={task!r} must be one of {', '.join(map(repr, TASKS))}, or None.")
    return tuple(name for name, info in REGISTRY.items() if task in (None, info.task))


def describe(name: str) -> DatasetInfo:
    """Return the description of a data set.

    Parameters
    ----------
    name : str
        Name of a data set of the registry (see :func:`names`).

    Returns
    -------
    DatasetInfo
        Source, licence, definition of the target and further information.

    Examples
    --------
    >>> from tessella.datasets import describe
    >>> describe("abalone").target_rule
    'at least 9 rings, mature, is class 1'
    """
    if name not in REGISTRY:
        raise ValueError(f"{name!r} is not a data set of the registry.{suggestion(name, REGISTRY)}")
    return REGISTRY[name]


def suggestion(name: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    """Return a sentence with names that are similar to an unknown name, or with all names."""
    near = difflib.get_close_matches(name.lower().replace("-", "_"), list(known), n=3, cutoff=0.5)
    if near:
        return f" Did you mean {' or '.join(map(repr, near))}?"
    return f" The known data sets are {', '.join(known)}."
