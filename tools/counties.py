"""Build src/ldf/datasets/counties.parquet: US county homicides 1988–90, features and shapes.

The source is the NCOVR set of Baller, Anselin, Messner, Deane and Hawkins (Criminology, 2001), as
libpysal 4.1.1 ships it (BSD-3-Clause). In an environment with geopandas and pyarrow:

    pip download --no-deps --no-binary :all: libpysal==4.1.1
    python tools/counties.py libpysal-4.1.1.tar.gz

Homicides are those of three years, which the source gives as a mean, and person-years three times
the population of 1990. Shapes are simplified together, so that neighbours still touch.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

OUT = Path(__file__).resolve().parent.parent / "src" / "ldf" / "datasets" / "counties.parquet"
FOLDER = "libpysal-4.1.1/libpysal/examples/nat"
YEARS = ("60", "70", "80", "90")
CENSUS = ("59", "69", "79", "89")  # the year before, for incomes
NOW = ("RD", "PS", "UE", "DV", "MA", "POL", "DNL", "BLK", "FH")
INCOME = ("MFIL", "FP", "GI")
COARSE = 0.02  # degrees: about two kilometres
DIGITS = 0.001  # degrees
ABOUT = {
    "title": "US county homicides 1988-90 with census features (NCOVR)",
    "source": "PyPI libpysal 4.1.1, libpysal/examples/nat/NAT; originally GeoDa sample data",
    "licence": "BSD-3-Clause (libpysal)",
    "citation": "Baller, R., Anselin, L., Messner, S., Deane, G. and Hawkins, D. (2001). "
    "Structural covariates of US county homicide rates. Criminology 39, 561-590.",
    "geometry": "WKB, longitude and latitude, simplified",
}


def read(archive: Path) -> geopandas.GeoDataFrame:
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as tar:
        for ending in ("dbf", "shp", "shx"):
            tar.extract(f"{FOLDER}/NAT.{ending}", folder, filter="data")
        return geopandas.read_file(Path(folder) / FOLDER / "NAT.shp")


def table(counties: geopandas.GeoDataFrame) -> pa.Table:
    homicides = 3 * counties["HC90"].to_numpy()
    whole = np.rint(homicides)
    if np.abs(homicides - whole).max() > 1e-6:
        raise SystemExit("three years' homicides are no whole numbers: is this another source?")
    features = ["SOUTH", "HR60", "HR70", "HR80"]
    features += [name + year for name in NOW for year in YEARS]
    features += [name + year for name in INCOME for year in CENSUS]
    shapes = shapely.coverage_simplify(counties.geometry.to_numpy(), COARSE)
    shapes = shapely.set_precision(shapes, DIGITS, mode="pointwise")
    columns = {
        "fips": counties["FIPS"].to_numpy(),
        "county": counties["NAME"].to_numpy(),
        "state": counties["STATE_NAME"].to_numpy(),
        "homicides": whole.astype(np.int32),
        "person_years": 3 * counties["PO90"].to_numpy().astype(np.int64),
        **{name: counties[name].to_numpy().astype(np.float64) for name in features},
        "geometry": shapely.to_wkb(shapes, output_dimension=2),
    }
    return pa.table(columns).replace_schema_metadata(ABOUT)


if __name__ == "__main__":
    pq.write_table(table(read(Path(sys.argv[1]))), OUT, compression="zstd", compression_level=19)
    print(OUT, OUT.stat().st_size)
