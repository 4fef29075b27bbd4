"""Airflow provider for Sparkgate, an HTTP gateway for Apache Spark on Kubernetes."""

__version__ = "0.1.0"
