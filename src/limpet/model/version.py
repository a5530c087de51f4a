"""The version of this limpet, in the one place that everything may import."""

VERSION = "0.1.0"  # no Final: importing typing would cost `limpet --version` half of its time
