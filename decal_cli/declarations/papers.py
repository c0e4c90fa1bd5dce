"""The papers that decal rests on, each named once and cited by authors and year."""

from __future__ import annotations

PAPERS = {
    "Arunachaleswaran et al. 2025": "An Elementary Predictor Obtaining 2 sqrt(T) + 1 Distance to Calibration",
    "Baker et al. 2009": "Using relative utility curves to evaluate risk prediction",
    "Blasiok and Nakkiran 2023": "Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing",
    "Blasiok et al. 2023": "A Unifying Theory of Distance from Calibration",
    "Bonett and Wright 2000": ("Sample size requirements for estimating Pearson, Kendall and Spearman correlations"),
    "Choe and Ramdas 2024": "Comparing Sequential Forecasters",
    "Cox 1958": "Two further applications of a model for binary regression",
    "De Moivre 1730": "Miscellanea Analytica",
    "DeLong et al. 1988": (
        "Comparing the areas under two or more correlated receiver operating characteristic curves: a nonparametric "
        "approach"
    ),
    "Dimitriadis et al. 2021": "Stable reliability diagrams for probabilistic classifiers",
    "Feller 1951": "The asymptotic distribution of the range of sums of independent random variables",
    "Gao et al. 2017": "On the Interpretability of Conditional Probability Estimates in the Agnostic Setting",
    "Good 1952": "Rational Decisions",
    "Guo et al. 2017": "On Calibration of Modern Neural Networks",
    "Gupta and Ramdas 2023": "Online Platt Scaling with Calibeating",
    "Hall 1992": "On the removal of skewness by transformation",
    "Hanley and McNeil 1982": "The meaning and use of the area under a receiver operating characteristic (ROC) curve",
    "Hartline et al. 2025": "A Perfectly Truthful Calibration Measure",
    "Hébert-Johnson et al. 2018": "Multicalibration: Calibration for the (Computationally-Identifiable) Masses",
    "Henzi et al. 2024": "A Safe Hosmer-Lemeshow Test",
    "Howard et al. 2021": "Time-uniform, nonparametric, nonasymptotic confidence sequences",
    "Hu and Wu 2024": "Calibration Error for Decision Making",
    "Kakade and Foster 2008": "Deterministic calibration and Nash equilibrium",
    "Kerr et al. 2016": (
        "Assessing the Clinical Impact of Risk Prediction Models With Decision Curves: Guidance for Correct "
        "Interpretation and Appropriate Use"
    ),
    "Kleinberg et al. 2023": "U-Calibration: Forecasting for an Unknown Agent",
    "Kull et al. 2017": (
        "Beyond sigmoids: How to obtain well-calibrated probabilities from binary classifiers with beta calibration"
    ),
    "Kumar et al. 2019": "Verified Uncertainty Calibration",
    "Langford and Zadrozny 2005": "Estimating Class Membership Probabilities using Classifier Learners",
    "Ma and Blaschko 2021": "Meta-Cal: Well-controlled Post-hoc Calibration by Ranking",
    "Manning et al. 2008": "Introduction to Information Retrieval",
    "Naeini et al. 2015": "Obtaining Well Calibrated Probabilities Using Bayesian Binning",
    "Nguyen and O'Connor 2015": "Posterior calibration and exploratory analysis for natural language processing models",
    "Perez-Lebel et al. 2023": "Beyond calibration: estimating the grouping loss of modern neural networks",
    "Perez-Lebel et al. 2025": "Decision from Suboptimal Classifiers: Regret Pre- and Post-Calibration",
    "Platt 1999": "Probabilistic outputs for support vector machines and comparisons to regularized likelihood methods",
    "Prokhorenkova et al. 2018": "CatBoost: unbiased boosting with categorical features",
    "Shah and Peters 2020": "The hardness of conditional independence testing and the generalised covariance measure",
    "Spiegelhalter 1986": "Probabilistic prediction in patient management and clinical trials",
    "Steele et al. 2014": "Fast splittable pseudorandom number generators",
    "Tasche 2021": "Calibrating sufficiently",
    "Vaicenavicius et al. 2019": "Evaluating model calibration in classification",
    "Ville 1939": "Étude critique de la notion de collectif",
    "Vickers and Elkin 2006": "Decision curve analysis: a novel method for evaluating prediction models",
    "Vovk and Petej 2014": "Venn-Abers predictors",
    "Vovk et al. 2015": "Large-scale probabilistic predictors with and without guarantees of validity",
    "Wolpert 1992": "Stacked generalization",
    "Zadrozny and Elkan 2001": (
        "Obtaining calibrated probability estimates from decision trees and naive Bayesian classifiers"
    ),
    "Zadrozny and Elkan 2002": "Transforming classifier scores into accurate multiclass probability estimates",
    "Zou and Donner 2008": "Construction of confidence limits about effect measures: A general approach",
}
"""Title by authors and year."""


def cite(paper: str, place: str = "") -> str:
    """'Hu and Wu 2024, Calibration Error for Decision Making, def. 2.14'; a KeyError for a paper that is not listed."""
    return ", ".join(filter(None, (paper, PAPERS[paper], place)))
