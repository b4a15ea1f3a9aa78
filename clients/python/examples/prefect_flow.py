"""A Prefect flow that loads a folder of files with ready embeddings, every document exactly once.

    pip install isolith prefect
    python prefect_flow.py outbox --store rag.isolith

Loading a file is idempotent: records are replaced by their ids, and a load that was interrupted
goes on where it stopped. So a task can be repeated after any failure, and the whole flow after a
crash or a restart. Files with errors are reported and not tried again until somebody has corrected
them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, task, unmapped
from prefect.cache_policies import NO_CACHE
from prefect.task_runners import ThreadPoolTaskRunner

from isolith.pipeline import IsolatedChromaDBWorker

# The file itself is at fault. Everything else may be better the next time.
PERMANENT = {
    "bad_input",
    "too_large",
    "not_found",
    "forbidden_path",
    "model_mismatch",
    "quarantined",
}


class IngestFailed(Exception):
    """A load that may succeed if it is repeated."""


@task(
    task_run_name="ingest {path.name}",
    retries=4,
    retry_delay_seconds=[0.2, 1, 5, 30],
    cache_policy=NO_CACHE,
)
def ingest(worker: IsolatedChromaDBWorker, path: Path, collection: str) -> dict[str, Any]:
    """Loads a file. Fails, and is repeated, if that may help."""
    result = worker.ingest_from_chromadb_ready_file(path, collection)
    if not result["success"] and result["error_code"] not in PERMANENT:
        raise IngestFailed(f"{path.name}: {result['error_type']}: {result['error']}")
    return result


@flow(name="ingest-folder", task_runner=ThreadPoolTaskRunner(max_workers=4))
def ingest_folder(
    folder: str, collection: str = "rag_documents", store: str = "rag.isolith"
) -> dict[str, Any]:
    """Loads all files of a folder; returns the counts, and the files that were not loaded."""
    logger = get_run_logger()
    paths = sorted(Path(folder).glob("*.json"))
    with IsolatedChromaDBWorker(persist_directory=store) as worker:
        futures = ingest.map(unmapped(worker), paths, unmapped(collection))
        outcomes = [future.result(raise_on_failure=False) for future in futures]
        documents = worker.get_ingestion_stats(collection)["document_count"]
    summary: dict[str, Any] = {"inserted": 0, "updated": 0, "unchanged": 0, "failed": {}}
    for path, outcome in zip(paths, outcomes):
        if isinstance(outcome, Exception):
            summary["failed"][path.name] = str(outcome)
        elif not outcome["success"]:
            summary["failed"][path.name] = outcome["error"]
        else:
            for count in ("inserted", "updated", "unchanged"):
                summary[count] += outcome["stats"][count]
    logger.info("%s documents in %s; %s", documents, collection, summary)
    return {"documents": documents, **summary}


def main() -> None:
    """Runs the flow once; exits with 1 if a file was not loaded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--collection", default="rag_documents")
    parser.add_argument("--store", default="rag.isolith")
    options = parser.parse_args()
    summary = ingest_folder(options.folder, options.collection, options.store)
    print(json.dumps(summary))
    sys.exit(1 if summary["failed"] else 0)


if __name__ == "__main__":
    main()
