"""Every kind of bad file, and every rule about files, has a test that shows what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import pytest

BAD_FILES: dict[str, Sequence[str]] = {
    "../x, a/../../x, absolute path": ("test_bad_external:test_locations_outside_the_folder",),
    "symlink, symlinked directory": (
        "test_bad_external:test_links_that_lead_out",
        "test_external:test_a_cache_of_links_works",
    ),
    "hard link": ("test_bad_external:test_a_hard_link",),
    "FIFO or device as location": (
        "test_bad_external:test_pipes_devices_folders_and_missing_files",
    ),
    "length huge, past the end, negative, not a number, too short": (
        "test_bad_external:test_sizes_that_do_not_fit",
    ),
    "external data named twice, not at all, of strings": (
        "test_bad_external:test_external_strings_repeats_and_a_missing_location",
    ),
    "raw_data too short, negative dim, dims overflow, unknown dtype": (
        "test_bad_files:test_tensors_that_are_not_what_they_say",
        "test_bad_files:test_a_type_no_one_knows_leaves_its_value_alone",
    ),
    "ConstantOfShape, Expand, Range, Tile bomb": (
        "test_bombs:test_nothing_large_is_made_while_a_bomb_is_optimised",
        "test_bombs:test_a_bomb_that_goes_off_is_stopped_at_a_limit_that_is_stated",
        "test_bombs:test_many_constants_grow_no_more_than_one_large_one",
    ),
    "sparse initializer": (
        "test_bad_files:test_a_sparse_initialiser_is_kept_and_never_made_dense",
    ),
    "If nested deep": ("test_bad_files:test_bodies_nested_too_deep",),
    "recursive functions": ("test_bad_graphs:test_functions_that_call_themselves",),
    "doubling functions": (
        "test_bad_graphs:test_doubling_functions_do_not_hang",
        "test_bombs:test_functions_that_expand_to_too_many_nodes_are_not_run",
    ),
    "duplicate initializer or output name, cycle, dangling input": (
        "test_bad_graphs:test_graphs_that_cannot_run",
        "test_bad_graphs:test_a_circle_through_a_body",
        "test_bad_graphs:test_a_name_missing_inside_a_body",
    ),
    "unsorted nodes": ("test_bad_graphs:test_nodes_out_of_order_are_sorted_and_reported",),
    "invalid perm": ("test_bad_perms:test_a_perm_that_is_not_valid",),
    "attribute of wrong type": (
        "test_bad_graphs:test_a_perm_that_is_no_list_of_integers_is_left_alone",
        "test_schemas:test_a_node_that_does_not_fit_its_operator",
    ),
    "repeated attribute": (
        "test_bad_graphs:test_a_repeated_attribute_is_left_alone_and_reads_as_unknown",
    ),
    "two imports of one domain": ("test_bad_graphs:test_graphs_that_cannot_run",),
    "future opset or IR": (
        "test_bad_graphs:test_unknown_versions_are_copied_through",
        "test_exit_codes:test_a_model_that_may_only_be_copied_is",
    ),
    "unknown domain or operator": ("test_bad_graphs:test_unknown_operators_are_opaque",),
    "name that is not UTF-8": ("test_bad_graphs:test_a_name_that_is_not_text_is_copied_through",),
    "empty file": ("test_bad_files:test_an_empty_file",),
    "truncated, random or HTML bytes": (
        "test_bad_files:test_bytes_that_are_not_a_model",
        "test_damaged_files:test_a_damaged_file_is_refused_or_copes",
    ),
    "unknown protobuf fields": ("test_save:test_nothing_is_lost_without_an_edit",),
    "message of 2 GiB or more": (
        "test_bad_files:test_a_file_beyond_the_limit_of_the_format",
        "test_save:test_data_too_large_for_a_message_goes_to_a_file",
        "test_outputs:test_more_data_than_a_message_holds_is_not_streamed",
    ),
}

RULES: dict[str, Sequence[str]] = {
    "temporary file in the target directory, then rename": (
        "test_save:test_what_is_not_committed_leaves_no_trace",
        "test_save:test_a_failure_leaves_no_trace",
        "test_outputs:test_a_full_disk_leaves_nothing",
    ),
    "never write to a location named by the model": (
        "test_external:test_a_link_in_the_other_folder_is_not_written_through",
        "test_external:test_another_file_is_never_overwritten",
    ),
    "never overwrite the input's data": ("test_external:test_new_data_gets_a_file_of_its_own",),
    "runtimes only in a child with limits of memory and time": (
        "test_isolated:test_a_bomb_does_not_go_off",
        "test_isolated:test_a_model_that_never_ends_is_stopped",
    ),
    "names are printed quoted and escaped": ("test_bad_graphs:test_names_are_printed_escaped",),
}

ROOMS = {
    "test_outputs": "tests",
    "test_exit_codes": "tests",
    "test_isolated": "tests.verify",
    "test_damaged_files": "tests.suites",
}
"""Where a test is that is not beside this one."""


@pytest.mark.parametrize("row", [*BAD_FILES, *RULES])
def test_every_row_has_its_tests(row: str) -> None:
    for place in (BAD_FILES | RULES)[row]:
        module, _, test = place.partition(":")
        assert callable(
            getattr(import_module(f"{ROOMS.get(module, 'tests.graph')}.{module}"), test)
        )
