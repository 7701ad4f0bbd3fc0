CREATE TABLE golden_schema.action (
    tenant text NOT NULL,
    root bigint NOT NULL,
    name text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    parameters text DEFAULT ''::text NOT NULL,
    default_compact_prompt text,
    CONSTRAINT action_name_check CHECK ((name <> ''::text))
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.action_p00 (
    tenant text CONSTRAINT action_tenant_not_null NOT NULL,
    root bigint CONSTRAINT action_root_not_null NOT NULL,
    name text CONSTRAINT action_name_not_null NOT NULL,
    description text DEFAULT ''::text CONSTRAINT action_description_not_null NOT NULL,
    parameters text DEFAULT ''::text CONSTRAINT action_parameters_not_null NOT NULL,
    default_compact_prompt text,
    CONSTRAINT action_name_check CHECK ((name <> ''::text))
);
CREATE TABLE golden_schema.action_p01 (
    tenant text CONSTRAINT action_tenant_not_null NOT NULL,
    root bigint CONSTRAINT action_root_not_null NOT NULL,
    name text CONSTRAINT action_name_not_null NOT NULL,
    description text DEFAULT ''::text CONSTRAINT action_description_not_null NOT NULL,
    parameters text DEFAULT ''::text CONSTRAINT action_parameters_not_null NOT NULL,
    default_compact_prompt text,
    CONSTRAINT action_name_check CHECK ((name <> ''::text))
);
CREATE TABLE golden_schema.binding (
    tenant text NOT NULL,
    root bigint NOT NULL,
    agent text NOT NULL,
    action text NOT NULL,
    result_expiration_turns bigint,
    result_expiration_mode text DEFAULT 'none'::text NOT NULL,
    compact_mode text,
    compact_length bigint,
    compact_prompt text,
    CONSTRAINT binding_agent_check CHECK ((agent <> ''::text)),
    CONSTRAINT compact_length_is_more_than_none CHECK (((compact_length IS NULL) OR (compact_length > 0))),
    CONSTRAINT compact_mode_is_known CHECK (((compact_mode IS NULL) OR (compact_mode = ANY (ARRAY['first_chars'::text, 'summary'::text])))),
    CONSTRAINT compact_says_in_which_way CHECK (((result_expiration_mode <> 'compact'::text) OR (compact_mode IS NOT NULL))),
    CONSTRAINT first_chars_says_how_many CHECK (((compact_mode IS NULL) OR (compact_mode <> 'first_chars'::text) OR (compact_length IS NOT NULL))),
    CONSTRAINT mode_is_known CHECK ((result_expiration_mode = ANY (ARRAY['none'::text, 'remove'::text, 'compact'::text]))),
    CONSTRAINT only_compact_says_how CHECK (((result_expiration_mode = 'compact'::text) OR ((compact_mode IS NULL) AND (compact_length IS NULL) AND (compact_prompt IS NULL)))),
    CONSTRAINT turns_are_none_or_more CHECK (((result_expiration_turns IS NULL) OR (result_expiration_turns >= 0)))
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.binding_p00 (
    tenant text CONSTRAINT binding_tenant_not_null NOT NULL,
    root bigint CONSTRAINT binding_root_not_null NOT NULL,
    agent text CONSTRAINT binding_agent_not_null NOT NULL,
    action text CONSTRAINT binding_action_not_null NOT NULL,
    result_expiration_turns bigint,
    result_expiration_mode text DEFAULT 'none'::text CONSTRAINT binding_result_expiration_mode_not_null NOT NULL,
    compact_mode text,
    compact_length bigint,
    compact_prompt text,
    CONSTRAINT binding_agent_check CHECK ((agent <> ''::text)),
    CONSTRAINT compact_length_is_more_than_none CHECK (((compact_length IS NULL) OR (compact_length > 0))),
    CONSTRAINT compact_mode_is_known CHECK (((compact_mode IS NULL) OR (compact_mode = ANY (ARRAY['first_chars'::text, 'summary'::text])))),
    CONSTRAINT compact_says_in_which_way CHECK (((result_expiration_mode <> 'compact'::text) OR (compact_mode IS NOT NULL))),
    CONSTRAINT first_chars_says_how_many CHECK (((compact_mode IS NULL) OR (compact_mode <> 'first_chars'::text) OR (compact_length IS NOT NULL))),
    CONSTRAINT mode_is_known CHECK ((result_expiration_mode = ANY (ARRAY['none'::text, 'remove'::text, 'compact'::text]))),
    CONSTRAINT only_compact_says_how CHECK (((result_expiration_mode = 'compact'::text) OR ((compact_mode IS NULL) AND (compact_length IS NULL) AND (compact_prompt IS NULL)))),
    CONSTRAINT turns_are_none_or_more CHECK (((result_expiration_turns IS NULL) OR (result_expiration_turns >= 0)))
);
CREATE TABLE golden_schema.binding_p01 (
    tenant text CONSTRAINT binding_tenant_not_null NOT NULL,
    root bigint CONSTRAINT binding_root_not_null NOT NULL,
    agent text CONSTRAINT binding_agent_not_null NOT NULL,
    action text CONSTRAINT binding_action_not_null NOT NULL,
    result_expiration_turns bigint,
    result_expiration_mode text DEFAULT 'none'::text CONSTRAINT binding_result_expiration_mode_not_null NOT NULL,
    compact_mode text,
    compact_length bigint,
    compact_prompt text,
    CONSTRAINT binding_agent_check CHECK ((agent <> ''::text)),
    CONSTRAINT compact_length_is_more_than_none CHECK (((compact_length IS NULL) OR (compact_length > 0))),
    CONSTRAINT compact_mode_is_known CHECK (((compact_mode IS NULL) OR (compact_mode = ANY (ARRAY['first_chars'::text, 'summary'::text])))),
    CONSTRAINT compact_says_in_which_way CHECK (((result_expiration_mode <> 'compact'::text) OR (compact_mode IS NOT NULL))),
    CONSTRAINT first_chars_says_how_many CHECK (((compact_mode IS NULL) OR (compact_mode <> 'first_chars'::text) OR (compact_length IS NOT NULL))),
    CONSTRAINT mode_is_known CHECK ((result_expiration_mode = ANY (ARRAY['none'::text, 'remove'::text, 'compact'::text]))),
    CONSTRAINT only_compact_says_how CHECK (((result_expiration_mode = 'compact'::text) OR ((compact_mode IS NULL) AND (compact_length IS NULL) AND (compact_prompt IS NULL)))),
    CONSTRAINT turns_are_none_or_more CHECK (((result_expiration_turns IS NULL) OR (result_expiration_turns >= 0)))
);
CREATE TABLE golden_schema.body (
    tenant text NOT NULL,
    root bigint NOT NULL,
    hash bytea NOT NULL,
    body bytea NOT NULL
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.body_p00 (
    tenant text CONSTRAINT body_tenant_not_null NOT NULL,
    root bigint CONSTRAINT body_root_not_null NOT NULL,
    hash bytea CONSTRAINT body_hash_not_null NOT NULL,
    body bytea CONSTRAINT body_body_not_null NOT NULL
);
CREATE TABLE golden_schema.body_p01 (
    tenant text CONSTRAINT body_tenant_not_null NOT NULL,
    root bigint CONSTRAINT body_root_not_null NOT NULL,
    hash bytea CONSTRAINT body_hash_not_null NOT NULL,
    body bytea CONSTRAINT body_body_not_null NOT NULL
);
CREATE TABLE golden_schema.branch (
    tenant text NOT NULL,
    root bigint NOT NULL,
    branch bigint NOT NULL,
    name text NOT NULL,
    lineage text NOT NULL,
    "position" bigint NOT NULL,
    tip bytea NOT NULL,
    seal bytea NOT NULL,
    number bigint NOT NULL,
    record bytea NOT NULL,
    erased bigint DEFAULT 0 NOT NULL,
    "time" bigint DEFAULT 0 NOT NULL
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.branch_p00 (
    tenant text CONSTRAINT branch_tenant_not_null NOT NULL,
    root bigint CONSTRAINT branch_root_not_null NOT NULL,
    branch bigint CONSTRAINT branch_branch_not_null NOT NULL,
    name text CONSTRAINT branch_name_not_null NOT NULL,
    lineage text CONSTRAINT branch_lineage_not_null NOT NULL,
    "position" bigint CONSTRAINT branch_position_not_null NOT NULL,
    tip bytea CONSTRAINT branch_tip_not_null NOT NULL,
    seal bytea CONSTRAINT branch_seal_not_null NOT NULL,
    number bigint CONSTRAINT branch_number_not_null NOT NULL,
    record bytea CONSTRAINT branch_record_not_null NOT NULL,
    erased bigint DEFAULT 0 CONSTRAINT branch_erased_not_null NOT NULL,
    "time" bigint DEFAULT 0 CONSTRAINT branch_time_not_null NOT NULL
);
CREATE TABLE golden_schema.branch_p01 (
    tenant text CONSTRAINT branch_tenant_not_null NOT NULL,
    root bigint CONSTRAINT branch_root_not_null NOT NULL,
    branch bigint CONSTRAINT branch_branch_not_null NOT NULL,
    name text CONSTRAINT branch_name_not_null NOT NULL,
    lineage text CONSTRAINT branch_lineage_not_null NOT NULL,
    "position" bigint CONSTRAINT branch_position_not_null NOT NULL,
    tip bytea CONSTRAINT branch_tip_not_null NOT NULL,
    seal bytea CONSTRAINT branch_seal_not_null NOT NULL,
    number bigint CONSTRAINT branch_number_not_null NOT NULL,
    record bytea CONSTRAINT branch_record_not_null NOT NULL,
    erased bigint DEFAULT 0 CONSTRAINT branch_erased_not_null NOT NULL,
    "time" bigint DEFAULT 0 CONSTRAINT branch_time_not_null NOT NULL
);
CREATE TABLE golden_schema.claim (
    tenant text NOT NULL,
    root bigint NOT NULL,
    branch bigint NOT NULL,
    owner text NOT NULL,
    beats bigint NOT NULL
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.claim_p00 (
    tenant text CONSTRAINT claim_tenant_not_null NOT NULL,
    root bigint CONSTRAINT claim_root_not_null NOT NULL,
    branch bigint CONSTRAINT claim_branch_not_null NOT NULL,
    owner text CONSTRAINT claim_owner_not_null NOT NULL,
    beats bigint CONSTRAINT claim_beats_not_null NOT NULL
);
CREATE TABLE golden_schema.claim_p01 (
    tenant text CONSTRAINT claim_tenant_not_null NOT NULL,
    root bigint CONSTRAINT claim_root_not_null NOT NULL,
    branch bigint CONSTRAINT claim_branch_not_null NOT NULL,
    owner text CONSTRAINT claim_owner_not_null NOT NULL,
    beats bigint CONSTRAINT claim_beats_not_null NOT NULL
);
CREATE TABLE golden_schema.conversation (
    tenant text NOT NULL,
    root bigint NOT NULL,
    name text NOT NULL,
    home bigint NOT NULL,
    branch bigint NOT NULL
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.conversation_p00 (
    tenant text CONSTRAINT conversation_tenant_not_null NOT NULL,
    root bigint CONSTRAINT conversation_root_not_null NOT NULL,
    name text CONSTRAINT conversation_name_not_null NOT NULL,
    home bigint CONSTRAINT conversation_home_not_null NOT NULL,
    branch bigint CONSTRAINT conversation_branch_not_null NOT NULL
);
CREATE TABLE golden_schema.conversation_p01 (
    tenant text CONSTRAINT conversation_tenant_not_null NOT NULL,
    root bigint CONSTRAINT conversation_root_not_null NOT NULL,
    name text CONSTRAINT conversation_name_not_null NOT NULL,
    home bigint CONSTRAINT conversation_home_not_null NOT NULL,
    branch bigint CONSTRAINT conversation_branch_not_null NOT NULL
);
CREATE TABLE golden_schema.erasure (
    tenant text NOT NULL,
    root bigint NOT NULL,
    number bigint NOT NULL,
    "time" bigint NOT NULL,
    who text NOT NULL,
    reason text NOT NULL,
    name text NOT NULL,
    handles text NOT NULL,
    messages bigint NOT NULL,
    edits bigint NOT NULL,
    runs bigint NOT NULL,
    steps bigint NOT NULL
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.erasure_p00 (
    tenant text CONSTRAINT erasure_tenant_not_null NOT NULL,
    root bigint CONSTRAINT erasure_root_not_null NOT NULL,
    number bigint CONSTRAINT erasure_number_not_null NOT NULL,
    "time" bigint CONSTRAINT erasure_time_not_null NOT NULL,
    who text CONSTRAINT erasure_who_not_null NOT NULL,
    reason text CONSTRAINT erasure_reason_not_null NOT NULL,
    name text CONSTRAINT erasure_name_not_null NOT NULL,
    handles text CONSTRAINT erasure_handles_not_null NOT NULL,
    messages bigint CONSTRAINT erasure_messages_not_null NOT NULL,
    edits bigint CONSTRAINT erasure_edits_not_null NOT NULL,
    runs bigint CONSTRAINT erasure_runs_not_null NOT NULL,
    steps bigint CONSTRAINT erasure_steps_not_null NOT NULL
);
CREATE TABLE golden_schema.erasure_p01 (
    tenant text CONSTRAINT erasure_tenant_not_null NOT NULL,
    root bigint CONSTRAINT erasure_root_not_null NOT NULL,
    number bigint CONSTRAINT erasure_number_not_null NOT NULL,
    "time" bigint CONSTRAINT erasure_time_not_null NOT NULL,
    who text CONSTRAINT erasure_who_not_null NOT NULL,
    reason text CONSTRAINT erasure_reason_not_null NOT NULL,
    name text CONSTRAINT erasure_name_not_null NOT NULL,
    handles text CONSTRAINT erasure_handles_not_null NOT NULL,
    messages bigint CONSTRAINT erasure_messages_not_null NOT NULL,
    edits bigint CONSTRAINT erasure_edits_not_null NOT NULL,
    runs bigint CONSTRAINT erasure_runs_not_null NOT NULL,
    steps bigint CONSTRAINT erasure_steps_not_null NOT NULL
);
CREATE TABLE golden_schema.indexed (
    tenant text NOT NULL,
    root bigint NOT NULL,
    branch bigint NOT NULL,
    "position" bigint NOT NULL,
    version bigint CONSTRAINT indexed_place_not_null NOT NULL
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.indexed_p00 (
    tenant text CONSTRAINT indexed_tenant_not_null NOT NULL,
    root bigint CONSTRAINT indexed_root_not_null NOT NULL,
    branch bigint CONSTRAINT indexed_branch_not_null NOT NULL,
    "position" bigint CONSTRAINT indexed_position_not_null NOT NULL,
    version bigint CONSTRAINT indexed_place_not_null NOT NULL
);
CREATE TABLE golden_schema.indexed_p01 (
    tenant text CONSTRAINT indexed_tenant_not_null NOT NULL,
    root bigint CONSTRAINT indexed_root_not_null NOT NULL,
    branch bigint CONSTRAINT indexed_branch_not_null NOT NULL,
    "position" bigint CONSTRAINT indexed_position_not_null NOT NULL,
    version bigint CONSTRAINT indexed_place_not_null NOT NULL
);
CREATE TABLE golden_schema.message (
    tenant text NOT NULL,
    root bigint NOT NULL,
    branch bigint NOT NULL,
    "position" bigint NOT NULL,
    id bytea NOT NULL,
    seal bytea NOT NULL,
    stamp bytea NOT NULL,
    body_hash bytea,
    body bytea
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.message_p00 (
    tenant text CONSTRAINT message_tenant_not_null NOT NULL,
    root bigint CONSTRAINT message_root_not_null NOT NULL,
    branch bigint CONSTRAINT message_branch_not_null NOT NULL,
    "position" bigint CONSTRAINT message_position_not_null NOT NULL,
    id bytea CONSTRAINT message_id_not_null NOT NULL,
    seal bytea CONSTRAINT message_seal_not_null NOT NULL,
    stamp bytea CONSTRAINT message_stamp_not_null NOT NULL,
    body_hash bytea,
    body bytea
);
CREATE TABLE golden_schema.message_p01 (
    tenant text CONSTRAINT message_tenant_not_null NOT NULL,
    root bigint CONSTRAINT message_root_not_null NOT NULL,
    branch bigint CONSTRAINT message_branch_not_null NOT NULL,
    "position" bigint CONSTRAINT message_position_not_null NOT NULL,
    id bytea CONSTRAINT message_id_not_null NOT NULL,
    seal bytea CONSTRAINT message_seal_not_null NOT NULL,
    stamp bytea CONSTRAINT message_stamp_not_null NOT NULL,
    body_hash bytea,
    body bytea
);
CREATE TABLE golden_schema.migration (
    version bigint NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied bigint NOT NULL
);
CREATE TABLE golden_schema.prompt (
    tenant text NOT NULL,
    root bigint NOT NULL,
    name text NOT NULL,
    text text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    models text DEFAULT ''::text NOT NULL,
    CONSTRAINT prompt_name_check CHECK ((name <> ''::text))
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.prompt_p00 (
    tenant text CONSTRAINT prompt_tenant_not_null NOT NULL,
    root bigint CONSTRAINT prompt_root_not_null NOT NULL,
    name text CONSTRAINT prompt_name_not_null NOT NULL,
    text text CONSTRAINT prompt_text_not_null NOT NULL,
    description text DEFAULT ''::text CONSTRAINT prompt_description_not_null NOT NULL,
    models text DEFAULT ''::text CONSTRAINT prompt_models_not_null NOT NULL,
    CONSTRAINT prompt_name_check CHECK ((name <> ''::text))
);
CREATE TABLE golden_schema.prompt_p01 (
    tenant text CONSTRAINT prompt_tenant_not_null NOT NULL,
    root bigint CONSTRAINT prompt_root_not_null NOT NULL,
    name text CONSTRAINT prompt_name_not_null NOT NULL,
    text text CONSTRAINT prompt_text_not_null NOT NULL,
    description text DEFAULT ''::text CONSTRAINT prompt_description_not_null NOT NULL,
    models text DEFAULT ''::text CONSTRAINT prompt_models_not_null NOT NULL,
    CONSTRAINT prompt_name_check CHECK ((name <> ''::text))
);
CREATE TABLE golden_schema.record (
    tenant text NOT NULL,
    root bigint NOT NULL,
    branch bigint NOT NULL,
    first bigint NOT NULL,
    id bytea NOT NULL,
    body bytea NOT NULL
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.record_p00 (
    tenant text CONSTRAINT record_tenant_not_null NOT NULL,
    root bigint CONSTRAINT record_root_not_null NOT NULL,
    branch bigint CONSTRAINT record_branch_not_null NOT NULL,
    first bigint CONSTRAINT record_first_not_null NOT NULL,
    id bytea CONSTRAINT record_id_not_null NOT NULL,
    body bytea CONSTRAINT record_body_not_null NOT NULL
);
CREATE TABLE golden_schema.record_p01 (
    tenant text CONSTRAINT record_tenant_not_null NOT NULL,
    root bigint CONSTRAINT record_root_not_null NOT NULL,
    branch bigint CONSTRAINT record_branch_not_null NOT NULL,
    first bigint CONSTRAINT record_first_not_null NOT NULL,
    id bytea CONSTRAINT record_id_not_null NOT NULL,
    body bytea CONSTRAINT record_body_not_null NOT NULL
);
CREATE TABLE golden_schema.run (
    tenant text NOT NULL,
    root bigint NOT NULL,
    id text NOT NULL,
    number bigint NOT NULL,
    agent text NOT NULL,
    conversation text NOT NULL,
    parent text NOT NULL,
    state text NOT NULL,
    task bytea NOT NULL,
    result bytea NOT NULL,
    reason bytea NOT NULL,
    turns bigint NOT NULL,
    input bigint,
    cache_read bigint,
    cache_write bigint,
    output bigint,
    reasoning bigint,
    cost double precision,
    begun bigint NOT NULL,
    ended bigint NOT NULL
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.run_p00 (
    tenant text CONSTRAINT run_tenant_not_null NOT NULL,
    root bigint CONSTRAINT run_root_not_null NOT NULL,
    id text CONSTRAINT run_id_not_null NOT NULL,
    number bigint CONSTRAINT run_number_not_null NOT NULL,
    agent text CONSTRAINT run_agent_not_null NOT NULL,
    conversation text CONSTRAINT run_conversation_not_null NOT NULL,
    parent text CONSTRAINT run_parent_not_null NOT NULL,
    state text CONSTRAINT run_state_not_null NOT NULL,
    task bytea CONSTRAINT run_task_not_null NOT NULL,
    result bytea CONSTRAINT run_result_not_null NOT NULL,
    reason bytea CONSTRAINT run_reason_not_null NOT NULL,
    turns bigint CONSTRAINT run_turns_not_null NOT NULL,
    input bigint,
    cache_read bigint,
    cache_write bigint,
    output bigint,
    reasoning bigint,
    cost double precision,
    begun bigint CONSTRAINT run_begun_not_null NOT NULL,
    ended bigint CONSTRAINT run_ended_not_null NOT NULL
);
CREATE TABLE golden_schema.run_p01 (
    tenant text CONSTRAINT run_tenant_not_null NOT NULL,
    root bigint CONSTRAINT run_root_not_null NOT NULL,
    id text CONSTRAINT run_id_not_null NOT NULL,
    number bigint CONSTRAINT run_number_not_null NOT NULL,
    agent text CONSTRAINT run_agent_not_null NOT NULL,
    conversation text CONSTRAINT run_conversation_not_null NOT NULL,
    parent text CONSTRAINT run_parent_not_null NOT NULL,
    state text CONSTRAINT run_state_not_null NOT NULL,
    task bytea CONSTRAINT run_task_not_null NOT NULL,
    result bytea CONSTRAINT run_result_not_null NOT NULL,
    reason bytea CONSTRAINT run_reason_not_null NOT NULL,
    turns bigint CONSTRAINT run_turns_not_null NOT NULL,
    input bigint,
    cache_read bigint,
    cache_write bigint,
    output bigint,
    reasoning bigint,
    cost double precision,
    begun bigint CONSTRAINT run_begun_not_null NOT NULL,
    ended bigint CONSTRAINT run_ended_not_null NOT NULL
);
CREATE TABLE golden_schema.said (
    tenant text NOT NULL,
    root bigint NOT NULL,
    branch bigint NOT NULL,
    bucket bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    body bytea NOT NULL
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.said_p00 (
    tenant text CONSTRAINT said_tenant_not_null NOT NULL,
    root bigint CONSTRAINT said_root_not_null NOT NULL,
    branch bigint CONSTRAINT said_branch_not_null NOT NULL,
    bucket bigint CONSTRAINT said_bucket_not_null NOT NULL,
    first bigint CONSTRAINT said_first_not_null NOT NULL,
    last bigint CONSTRAINT said_last_not_null NOT NULL,
    body bytea CONSTRAINT said_body_not_null NOT NULL
);
CREATE TABLE golden_schema.said_p01 (
    tenant text CONSTRAINT said_tenant_not_null NOT NULL,
    root bigint CONSTRAINT said_root_not_null NOT NULL,
    branch bigint CONSTRAINT said_branch_not_null NOT NULL,
    bucket bigint CONSTRAINT said_bucket_not_null NOT NULL,
    first bigint CONSTRAINT said_first_not_null NOT NULL,
    last bigint CONSTRAINT said_last_not_null NOT NULL,
    body bytea CONSTRAINT said_body_not_null NOT NULL
);
CREATE TABLE golden_schema.snapshot (
    tenant text NOT NULL,
    root bigint NOT NULL,
    branch bigint NOT NULL,
    "position" bigint NOT NULL,
    number bigint NOT NULL,
    hash bytea NOT NULL,
    body bytea NOT NULL,
    view_hash bytea,
    view_body bytea
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.snapshot_p00 (
    tenant text CONSTRAINT snapshot_tenant_not_null NOT NULL,
    root bigint CONSTRAINT snapshot_root_not_null NOT NULL,
    branch bigint CONSTRAINT snapshot_branch_not_null NOT NULL,
    "position" bigint CONSTRAINT snapshot_position_not_null NOT NULL,
    number bigint CONSTRAINT snapshot_number_not_null NOT NULL,
    hash bytea CONSTRAINT snapshot_hash_not_null NOT NULL,
    body bytea CONSTRAINT snapshot_body_not_null NOT NULL,
    view_hash bytea,
    view_body bytea
);
CREATE TABLE golden_schema.snapshot_p01 (
    tenant text CONSTRAINT snapshot_tenant_not_null NOT NULL,
    root bigint CONSTRAINT snapshot_root_not_null NOT NULL,
    branch bigint CONSTRAINT snapshot_branch_not_null NOT NULL,
    "position" bigint CONSTRAINT snapshot_position_not_null NOT NULL,
    number bigint CONSTRAINT snapshot_number_not_null NOT NULL,
    hash bytea CONSTRAINT snapshot_hash_not_null NOT NULL,
    body bytea CONSTRAINT snapshot_body_not_null NOT NULL,
    view_hash bytea,
    view_body bytea
);
CREATE TABLE golden_schema.step (
    tenant text NOT NULL,
    root bigint NOT NULL,
    run text NOT NULL,
    number bigint NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    call text NOT NULL,
    state text NOT NULL,
    input bytea NOT NULL,
    output bytea NOT NULL,
    error bytea NOT NULL,
    message text NOT NULL,
    turn bigint NOT NULL,
    begun bigint NOT NULL,
    ended bigint NOT NULL
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.step_p00 (
    tenant text CONSTRAINT step_tenant_not_null NOT NULL,
    root bigint CONSTRAINT step_root_not_null NOT NULL,
    run text CONSTRAINT step_run_not_null NOT NULL,
    number bigint CONSTRAINT step_number_not_null NOT NULL,
    kind text CONSTRAINT step_kind_not_null NOT NULL,
    name text CONSTRAINT step_name_not_null NOT NULL,
    call text CONSTRAINT step_call_not_null NOT NULL,
    state text CONSTRAINT step_state_not_null NOT NULL,
    input bytea CONSTRAINT step_input_not_null NOT NULL,
    output bytea CONSTRAINT step_output_not_null NOT NULL,
    error bytea CONSTRAINT step_error_not_null NOT NULL,
    message text CONSTRAINT step_message_not_null NOT NULL,
    turn bigint CONSTRAINT step_turn_not_null NOT NULL,
    begun bigint CONSTRAINT step_begun_not_null NOT NULL,
    ended bigint CONSTRAINT step_ended_not_null NOT NULL
);
CREATE TABLE golden_schema.step_p01 (
    tenant text CONSTRAINT step_tenant_not_null NOT NULL,
    root bigint CONSTRAINT step_root_not_null NOT NULL,
    run text CONSTRAINT step_run_not_null NOT NULL,
    number bigint CONSTRAINT step_number_not_null NOT NULL,
    kind text CONSTRAINT step_kind_not_null NOT NULL,
    name text CONSTRAINT step_name_not_null NOT NULL,
    call text CONSTRAINT step_call_not_null NOT NULL,
    state text CONSTRAINT step_state_not_null NOT NULL,
    input bytea CONSTRAINT step_input_not_null NOT NULL,
    output bytea CONSTRAINT step_output_not_null NOT NULL,
    error bytea CONSTRAINT step_error_not_null NOT NULL,
    message text CONSTRAINT step_message_not_null NOT NULL,
    turn bigint CONSTRAINT step_turn_not_null NOT NULL,
    begun bigint CONSTRAINT step_begun_not_null NOT NULL,
    ended bigint CONSTRAINT step_ended_not_null NOT NULL
);
CREATE TABLE golden_schema.tree (
    tenant text NOT NULL,
    root bigint NOT NULL,
    branches bigint NOT NULL
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.tree_p00 (
    tenant text CONSTRAINT tree_tenant_not_null NOT NULL,
    root bigint CONSTRAINT tree_root_not_null NOT NULL,
    branches bigint CONSTRAINT tree_branches_not_null NOT NULL
);
CREATE TABLE golden_schema.tree_p01 (
    tenant text CONSTRAINT tree_tenant_not_null NOT NULL,
    root bigint CONSTRAINT tree_root_not_null NOT NULL,
    branches bigint CONSTRAINT tree_branches_not_null NOT NULL
);
ALTER TABLE ONLY golden_schema.action ATTACH PARTITION golden_schema.action_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.action ATTACH PARTITION golden_schema.action_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.binding ATTACH PARTITION golden_schema.binding_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.binding ATTACH PARTITION golden_schema.binding_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.body ATTACH PARTITION golden_schema.body_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.body ATTACH PARTITION golden_schema.body_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.branch ATTACH PARTITION golden_schema.branch_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.branch ATTACH PARTITION golden_schema.branch_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.claim ATTACH PARTITION golden_schema.claim_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.claim ATTACH PARTITION golden_schema.claim_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.conversation ATTACH PARTITION golden_schema.conversation_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.conversation ATTACH PARTITION golden_schema.conversation_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.erasure ATTACH PARTITION golden_schema.erasure_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.erasure ATTACH PARTITION golden_schema.erasure_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.indexed ATTACH PARTITION golden_schema.indexed_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.indexed ATTACH PARTITION golden_schema.indexed_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.message ATTACH PARTITION golden_schema.message_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.message ATTACH PARTITION golden_schema.message_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.prompt ATTACH PARTITION golden_schema.prompt_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.prompt ATTACH PARTITION golden_schema.prompt_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.record ATTACH PARTITION golden_schema.record_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.record ATTACH PARTITION golden_schema.record_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.run ATTACH PARTITION golden_schema.run_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.run ATTACH PARTITION golden_schema.run_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.said ATTACH PARTITION golden_schema.said_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.said ATTACH PARTITION golden_schema.said_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.snapshot ATTACH PARTITION golden_schema.snapshot_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.snapshot ATTACH PARTITION golden_schema.snapshot_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.step ATTACH PARTITION golden_schema.step_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.step ATTACH PARTITION golden_schema.step_p01 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY golden_schema.tree ATTACH PARTITION golden_schema.tree_p00 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY golden_schema.tree ATTACH PARTITION golden_schema.tree_p01 FOR VALUES WITH (modulus 2, remainder 1);
INSERT INTO golden_schema.action_p01 VALUES ('acme', 2555229902990548286, 'look', 'Looks.', '{}', 'short');
INSERT INTO golden_schema.binding_p01 VALUES ('acme', 2555229902990548286, 'me', 'look', 3, 'compact', 'summary', 80, 'short');
INSERT INTO golden_schema.body_p01 VALUES ('acme', 4735389535593852289, '\x50d28c880b26dbd5424337d76dd62d62c1d820eb', '\x0295dacb996cb90d03e0542a84a3b7e484bcf1e7c97f67fcec08bc98b9dd5de74151240042f57fa6f63ffffcf7dffffa7dbff69bbff76bfbd7d76fecdf7cbf3d7fb7fdda97cf7afe9d339fe68a974b724d5ff9f7bedfe833d7e7ee5c3767febdf3b7fafbadb37f3bd7edfc7bf2fbc9df6f3e7fb9ee6dcfcd8dedcb135acba39a67b69e87b7e12dd3eb96f76e016c919c44d4ee144322ec9f289a88fbf77e7d7cf3d7e7d71259eee8db4fc7dfae4f5fae1bee1879bea013f9c8f3c6cc9387778c93b78d9bf78e9708e69758a6a8e6487c7326d2b913f33c566b19ebcb7a56b3e061c5f9e4b7ac791d3fbdfc6d7ff93477b5643377ec957bf7c953f6cdf3ceb72427779cbcf37756de7b4e22e859a7b07a1eeac3a4ac9d24ea93a8979ff27e4949caeeed4945aeeedd4f337feb3b9f666f4e169b3bc6c8bd630d4bccd3f2a6fe9b9e3fe7d7ad294bbccb72cec94a72c75ae3584402febe25fe9ef86f859e9fde4e4cbd7dbf3cee2460efb8529c68f7ef7e23fb9a77b4d1f3d3ba89f9ae66ab72d1b827f12d978facb0bb77de91d044f5cd9174f7a47b37a5f4aefc1ea9bd024a04df4e5d8d3d7e7bef8a6524962d79f9f4dc5cd7b76bdfefbec4d0bfa38eaa704662d88a440cb775b5903298b97e9c97ed4dc449ca3e79730a67b5dcb1aa9e6f3fbfdd4edeb75a36f5e68e24e07969ffe5ee4a4895f352bad7f679dbcd3eaca9fc42a4a991ac73e7deac33399f8ae926bf5962225e276f7b3b391f9aefcce4b78dac6ef5fb4b4672e1adfdffb4699b1a20599dc35e4fb95c3ab14a37399f2b37cc975c2ecf4bf214629a62efdc913d4bb6e613732239bf6b9b4696d96c7bef4d196d29ca46a4016c4e13743ecd53154aee5837b7ee5459e23d95839e7ac81dddb60cd1362d9cf525f5763eb949d6d5761a72b6d4ca4ca3a4f65203ab30e3b3cb4b86bfdc71fc940dcc9f340004d8a7523bd5790abbdb4808937c5eddf9e04f1e799bd8a65ecb1dc9a72250db5973b54feee9cd6a9367e94b68b623fd3e35f8d27c49fd974ff376db01c734d71801b307a636201a92a5925bca6e1cb7a7e9f28c2426dbaf6a657faf2745a9d59b3bd6571d2d9097fb859c9e4d66925ee893400e9019b96e81afbd92f6d3d4c559f9b41692facbfd49c800846fd666250deda9e2544e5ad2fb032fc99b4dc91dd9f6fc9bfd2eec90869dbe19406cbc0b13f47f9e96172f9d966a3b3de89086b6fc36b2922c5beab283631c352da693c4ac9942c91b93ba2c348997e244ade11b044dac79d107914fd5547e5a2d7f4b9f254d2bd71d37a41b015692fcd9284d9b65a472b2b43101d686b54f7174f728130094f72c8824e4bc477bc3ec05daba057d01be7d96e62a00ea4ae2c129f0213aa9992dd59dedcb927616b2e792866c427eb9dbc6053e52f222958677d55ffa60add4e91e4948b62b4f4cb114937589c0325deb4b7ca00f676495f90f17e0beacca2e340be93b889b224e9a92eb2cf9a9866e3761ef7a9586ec48a15bee0ac925949b3c4c8db896129ea9a1a3c01b4cfcb2acf650e3d910493030710d092c5cfb2c05eba4c68eee4df1a6b2a62b11dcf8f2d4d0b02b45f05379ed0ecf54451b862f574eb1aaacd37d9ad534fddfbf24bdbfa4288c104839de8f49023ad6858fc802dc10faec5a6ec8812dccbab6c4e6e5c7cee5bf44de5e7293a20d0ade44365179aae3481558ca758778388d3c38569e224971d930fd595cbb60c4213e7056b1e6c245b032344416619b99c8f563a009c637d949947355ce5b3185a7751c7a0136f4ebb882480ac065db8fde7a0599a9280c7f65e5a60806ee9b24c47ac573583f4fcc7fc9620b3a845d7345879b63608d637df9691548b6ea6a2d36f4e503d6e9dabc4e11e739936490d87e61de065569fbc48d4cf33a3d9380c04a8023e5da75e9c0229b26691e9b0414e516f0e9996b231f8401eed9e1ec611290de94f069ab974ebf48c815b66fd073b34a8cea5242d10dd315152551d8093bda747946b50128d510c036f5b0f18be2276b0883dd7a89cf6cc9b0f1e2b80741a620964ede58e12c0d9dcd0f165e84324823057811b1024f4649c61e75601514d3c455535d2f9591941e15f3a7ae80c0486feeadf36ec268ad933f0b40675b2699b43f10872b43cf3483f69d98ac0401fd78c0f5d5df24f753db137740d701c076aaf9ada26cdc7108d44178daa47ea8b7eaf60f3b015b4b3f20f62be24c64c1777da39ae07ee98d02ac3fa5a9a7f5d3a70346f553125c3410ccecda69029d94e14572da299f1ddb415511facbc2237d126b120542d2c9eeb38f293e0b4d831472cf1a2c347b92bad6c339d20e122d6d587cd6517c91fc11881b057fd9cb7091729fe0a917be1b37929e811a89b40530f6a4b72fb996ed48308aaac9ac9ddcd06c52af762e8da6632d0e721ea2e0258b7d449f8c53f38ecd84a336b99118fd5dc2ea1324c6ee2448ca2900a88210176dbea9c3441c18018707d0e8b34b4d696b52b3d365030c075189f056952e1b744b561dcd4aa08239aa264abbbadf9a12cb127bc44b6a81d26857046983d54a951c3867bc5ac0a0589c0aedd4974126bda76f0c0ca694851402348804a2073b29ce04bd216cf3aeaa47aafe425344b8afea11f8b7f043e9eb5a8ccaf4309b11a2232fd558a1bfca0743a366024511f42df0222a893fdd76d57b269a30bf629613c54c646d22db50b96b54bd14b73966d6a50a0ae88c12b552685ae9877ea7c44a3028a3a8719301cd6dcf61f62262b6aed9caabb4fda3b7560d03591f96ee46ba50be1982e2cea64392927a24dc92e882882dc80ffc2802036e9e3bcc6d6089b2d72ad4db011135d49a02833503b4cb3ab1345091e69f9a2f0a459d48ef29e4817b4041791efb1ac1621a4ce02fdd77c8f250c3a4d271e8c28b64141e8e5cf5c3c3971f0a4887d06d6110749f156d48de68a3f787d52658cf559baf923b8b4c2f73e0fc4a741933768d14451b9bae357fa8f8a8a241c57fda5b41e8e2d4feaac6a9b7a1a3ae66c20a466c74969b7ad5c6075c25f7a8f3b466cdfdc64a54feb29197bc3974bf317117d0827a927dc8c9327f1f937bf4a06aa1ea49c36d410fa940fe89baf6444006943f8967a27e405eefb7924625d988f780700acdec9a5cc37478809e146eaa809a303b840ef13318804a9417d8fcf36292babb4827da741b0940e1207f9758c2fe80bad4f4e25614abe26db1256dac1e8312942ab23f897e42f874927ecb55eb96b2d1654b63958c35a96f2ca4e0664d300c13b36b2f2ba6336612b13edbd0a7411af890b9ef9889f05aaef2db2ca3c46eb5b2753efa53bfd3970d9e102c99d0a767d5f678bc377a1637c2fbbb9a9c83fee23e4caa6bd6545f86563903f41a7ad94def96e6ab62833035dd2795efa0625a8e5438a6b1d64bb97b0443e58c1a4c93a7010157cd48145d68bc44ad8eca063c6b467558648f026b118469a766dbfafafe3170d0e633a3352ad9f83546991f49ffe16834d269183d1679d394291f6e322036fb69d738ab03de276e2cde29afe1e19345b280ea8534af74c2014680800f54838b66a03c871658967d2064564130e077836d4d3686d329ad2996f6bb356f91dd34d48954518ec6eac6dbe04ad9c9597cdabc49ff17a45ac662441c1ab1bd7207884d7bb9fe34c8d1230413c91896303e4a45074de0906fb98b6cd016f765b04d02211dc2da8953da4eda7991d2896422414cf6350eab3c2c189d99b98d59c8a45c8c84c3546c7fe2408350ac97ec52cab9a234b3214bc776080152ee85a6189f33749076cab5d894402c8fd51ca45357f59b41bb1b4d940c2a687f2eeb90c55965c1441b488bb6802dfbf160257558cbb41386a51afd9849bd958da9a72ebe2dbb68fde968fb5a3ec8634b30f64afcace22e2a8544f9d888831aaea99ce950bed02b5bc1105a1e1e4f6d9ba250cc18256e67f93f4c1295497a8d5bc86fac050f2468e3b70df22f4c52e9616c95e8b139eab4b13600fca1f55a0def65b3b26c8a474aec73293bc484f90b96041ec94b645cc3d9e326f14ad30452969f5e8dfd2afef2a760953c2d23cc392521bf9aef8dd265f11933580c1bf88678271bb10477a4486d531e14ecfc04a9c90c0578579f74dee97c789b43d349cbe801e8acb595f16cd5581726e2bdcb414602af17e4aa7d0443083157a33c18067c12f2cac07c145f9aee0232d3026b3c0b31706beb2cbea9a159de12df3024a501100f566fba203544dfb2e4a36b815bb9211ff6ff289366d1414d34b3ca2b6d25afd54b1365295d5d5e5a45707c40fe6a296ff77de869b3e4e5ba168651bdb0bf6eaac64ea6df5b5e2107d44875555859fe26715dbec4dccb17ada7940e2b83da67f8d6e71074edeaabc40277172d6a59c381470097cc409cb4c92bd0b022aaf51b7c26c707fa89196927879edcc5b86d94546265ca7154ba4148ad68e75539762af0e4b81cc3694268e4da33df1cd3cb2c21bd4b1367bb8c2fc9c047c3453bd9683cbf48f34f11c8ecfb8af5d9ea44d6a4a6aa7a668da37592a3ed98b6afc6ceaef2f2ce53455fabd55e877bd711646622e99ba05045ff210495518a8fa42dbec6c4b7dc0e16e6e42154aaad6a394938e681c08cc422813a02603a7d87e755355e5cc25831081bfa4ec7e224529e383d035d970a357b9537c4e36466044358e55f55afe1412acb77ad01ab04c020afb43e40dc5cb8e737f0b1a9d376ca95be5c9e530e3bf8e70cd410fd274a2ede823e98b7c4fb2d5f82e7c737ef257d57d5e63197532430cfff2609990d26133dbced024fc735741102743294f1daec0bac9f0a71a273fe1c225620b1e2606528c44d1ab4532a989178e4cce81430f42b6c9a0619a313e13ffd9a8a2abd00d373ed852bb7dc7ca3ffad93100855e737e5fabf3ae6284cf80a862f07a7a66ad458473a6522d628628bbbc282be24d892088ed14005d968d1d8b2c3bdba7ada7a9749b8d17fd371dd715a9586b60f0428077e594d69191d3501ef0158d92496db26d818394ec54e4d510cf745ca62c351528f2d1256a8b31e52c04ee973a5db904734152033533a9bda750a5adc3ceb6806af1a0f961398e6206012aba750d849525e98f5a71d06957d88a3deff00908ea261469d50a000dcd5a955ebd0aa1b7306a0cd2b65ab22c892ad08f9b53a45e050503a5742cb07fd1ca83038f906aba4fca95353b5e65a8ac464bad54a36ac4cd5f2baa1a131a4c63dd5eb90b44e6d2efef88a07ffccd9d40b92fafe24488d09c848ff37c34bc8d4d804b0f90c296993a553542c57037639b91ca95627a6e4aac3aa615fb793dede60fde42930cd24f894cea7129719b3e194a9bb0f976ad460c6436955d6df9f86a16fa681cd4171c9f5145d73343055e9d93543d6592dbae5cfcc07edffced40035815427b2957ba754094b5c85bce529958d01914bed99155fb970944cf962afdc2fc971f8e04863887c737c333f3d14aef9f9142549f9b68394d9945aaf0367158a43672f83ab60990df1a7d90034c6a081a69c1fedd2d1d3d6864de12f58b9cbe327a69c7126ab75b05aa720bced6de8f00c47792ccb6154d8cec19b3caec9796c75d6255268d8ff4610a31906e57237265314cee0b47120d8f614fb2a1e35d42f250f839de20cd57e38d1d10092ca5975b2b258ee0deacc59d128ed723238c35cbbefefbc197d55a4cc913ab1eb85dbbcae72e0b4a570334c9a664b6b662728eb63301f8e67b783935e8c5ace41d9327f8d5ca2d3f1a9b6f82476d5733f1262186a57b9553c3e93addd007703e2ef53c7f428f06d28e32e03227537115965a90e7f41f89fb909650d4256d77af9cf757aac277c69a0d4d5a8c379a7af0ced8d51b2971c18c71e52316195776752a8c4d4b703b653813a9ec0a2f40951bceaa4b4fcc01a66d5a47e3db754de2ae7354cca22d97fc76dcb6546bacd0e362a97bf40420c369313c3b3cbe7eb757484ca7ae18b92a9f1a60e44010ca1dbbe7273ebcb096c835b4e19f630d1155e2be08ddf3a7db8abd7b8478b81d29ca52e944de94c035e1d60b7621b341294f1e58b9a03792aa6940361679d8f4c94e734a86cde55ace6700267dc3a29e5c93899e2aa96a15e62c378cd743938acd78802573b2dba0b2c5bcd06ac495ff8c8a33548d9c243dad8f80ec2a92480d10bfe76a5df79662b97b50e2ac9c6539508b8cbcba8739c59364de50498db12fbdaea54d841498adbc908b74eb72fa9a4332795566300bb8c2e9d461fcef544ace7d5373e6a33819c123e507c2096e3106118b44f9d1003ce4d097747a35b5b76a4b80d409d43beeb9b2b8eb3b623ae6ed35709635f9b58cee41b576a11566d576dd6d19bd67150d36a2a35236521d57514b86ae42db4e2003339449fc630ff4ddfa6207626b54c0d4d33a68298bbbe3a80574ed18cc3f63a4b351ed4ab8010a079ec8f822f471258a3ce589099b9e66f431daf728ca7db918f27cffa760da1591c68daa7c8e9d55b27bb0abfffec56ee5ebedcf53f');
INSERT INTO golden_schema.branch_p01 VALUES ('acme', 4735389535593852289, 2, 'two', '[[1,2,0]]', 3, '\xcbf2246c14286a66bfe6d8a51eb6aba9dba65d67', '\x3663ca6de13001766b6620e8c368ffb2fc11dd33', 0, '\x', 0, 1790000003000);
INSERT INTO golden_schema.branch_p01 VALUES ('acme', 4735389535593852289, 1, 'one', '[]', 3, '\x94ef2ff606a5fb571bf1b933ab380b58f15a6dee', '\x672105430a651506884d3c441dd71e4212ebfadd', 1, '\xd11f3c853eb141232c9a35c8c9e550563d761815', 0, 1790000003000);
INSERT INTO golden_schema.conversation_p00 VALUES ('acme', 7560415925572409967, 'two', 4735389535593852289, 2);
INSERT INTO golden_schema.conversation_p01 VALUES ('acme', 4735389535593852289, 'one', 4735389535593852289, 1);
INSERT INTO golden_schema.indexed_p01 VALUES ('acme', 4735389535593852289, 1, 3, 2);
INSERT INTO golden_schema.message_p01 VALUES ('acme', 4735389535593852289, 1, 1, '\x25b0efbe122e00e9063cbdef8929213c5ec78b18', '\xea575a95fffd2d9455c56d5ca531c3488d4d5fb2', '\x9700cf000001a0c4506fe80ea475736572a0c000', NULL, '\x022331688b1233f3ec413a01');
INSERT INTO golden_schema.message_p01 VALUES ('acme', 4735389535593852289, 1, 2, '\x193347be0abbf9607f58592447b34b8e4ca73b90', '\x0df7250f3aa73886b4e9936a7501228ca4f92daa', '\x9701cf000001a0c45073d011a9617373697374616e74a0c000', NULL, '\x02232eac5075fae5eb00ab82bc143d901100');
INSERT INTO golden_schema.message_p01 VALUES ('acme', 4735389535593852289, 1, 3, '\x94ef2ff606a5fb571bf1b933ab380b58f15a6dee', '\x672105430a651506884d3c441dd71e4212ebfadd', '\x9701cf000001a0c45077b8cd0977a475736572a0c000', '\x50d28c880b26dbd5424337d76dd62d62c1d820eb', NULL);
INSERT INTO golden_schema.message_p01 VALUES ('acme', 4735389535593852289, 2, 3, '\xcbf2246c14286a66bfe6d8a51eb6aba9dba65d67', '\x3663ca6de13001766b6620e8c368ffb2fc11dd33', '\x9702cf000001a0c45077b80fa475736572a0c000', NULL, '\x0223316841853ca894b607e90600');
INSERT INTO golden_schema.migration VALUES (1, '0001_conversations', '6f7194a313a5065d5cbd03b65f862eb1998193ac', 1790000000000);
INSERT INTO golden_schema.migration VALUES (2, '0002_words', '788e1ae906a47619bf5f3c3ef5bc19dfae2dcba5', 1790000000000);
INSERT INTO golden_schema.migration VALUES (3, '0003_runs', 'f41cbf3e82cec50e40648ae3a502748105e568a7', 1790000000000);
INSERT INTO golden_schema.migration VALUES (4, '0004_catalog', '3650048cf53d74862a604d6d731fc80e51fe7422', 1790000000000);
INSERT INTO golden_schema.migration VALUES (5, '0005_erasures', 'e97961a1a676efeb5b818f1d3d56c403d3ecf802', 1790000000000);
INSERT INTO golden_schema.migration VALUES (6, '0006_words_by_tree', '455eea618b3b9d305c66891ebd8e66f4c8a0d866', 1790000000000);
INSERT INTO golden_schema.migration VALUES (7, '0007_claims', 'f3627129f1a41a153cc155450367af6484c7c55a', 1790000000000);
INSERT INTO golden_schema.migration VALUES (8, '0008_prompt_models', '2de95ae9797e8882fdbc296079903f37ec5fb092', 1790000000000);
INSERT INTO golden_schema.migration VALUES (9, '0009_last_activity', 'acfd8331cedf6460f29b50b6a16d0b98ee2a20c5', 1790000000000);
INSERT INTO golden_schema.migration VALUES (10, '0010_word_runs', 'd6ecabdbacd81b33211e934bc5d5eda317dcf3a1', 1790000000000);
INSERT INTO golden_schema.migration VALUES (11, '0011_saved_views', 'b6dc15c03a4412991dbd7b9d2456d1c4212100cb', 1790000000000);
INSERT INTO golden_schema.prompt_p01 VALUES ('acme', 2555229902990548286, 'short', '{{ text }}', '', '');
INSERT INTO golden_schema.record_p01 VALUES ('acme', 4735389535593852289, 1, 1, '\xd11f3c853eb141232c9a35c8c9e550563d761815', '\x028d95410b02211085ff4a74eea099eeda5f893dcca4434254aced21faf3bd9985a05bde149edf43de1bdf68c4dcb1f7c85769bf984b2b550570599f9611d5e74395bd487289a2701c3c8be71c0271181dc7517ca4542a94a76982f9fbb59d5f86ef2a5fdfddccae5f0bdd364a861fa0303fb7c7b0b332c3d490dd77e9e103bafff960f7a6f5b72b69c1e499359146fb00');
INSERT INTO golden_schema.run_p01 VALUES ('acme', 4735389535593852289, 'r1', 1, 'me', 'one', '', 'done', '\x020317c389c5d900', '\x00646f6e65', '\x', 1, NULL, NULL, NULL, NULL, NULL, NULL, 1, 2);
INSERT INTO golden_schema.said_p01 VALUES ('acme', 4735389535593852289, 1, -1, 1, 3, '\x789c25da5daeecb80d04e0f7aca297d06d89a4bc9c00018200c104c84bb69ffa7431e3bafaa1249aa2aa29fa7cfefbf77ffdf5f9dbe7afff7cfef7afbffe91d2f7f3fbfc02dffb6c5081df850127f0e85817746c1df500d56af0065a5bab369131f7681b72a3ed683ba63ada8e61f7a1c0bb40aa579fcc12a0ddeff7001dcf014a4bc7ca74bfedb985058c2a8ff6ba35835a75c031d2ca99f5b1c8f31d7080e69fe742267c6ef5b9a54cfb6ca3f62d9155289d967b18e46186a76fc9e4cc40edc7bb3f2fb157fb6bd1371dcb5acb6b2c8aafc7f3050b687f0690f5ee6b65fcda44bcf2a2cdda7a15bcf22a036ccaa2cda2cd6a12ad6d8830c33a7ad962b1fb6683cd2e9b3a9bc9b757dc6a7fe0d688f51764a66d7b6fd359e0d6b41b6d63f76b466fbead525fcf0316d820f25caabc7831793db7aad38b17b3d452b2d7659bcb0a55aab6a0bc6f0d11cbd7890df22f3dfb7be1010b44a8bd62f3f2f69eecd4566f666f0b376337c76f966dabf7d2a6e635da8677ff8051b7c386f7a8daf1668fbeba1ce319bbefa393659adff71bb1a1dc50ce1cc3f79d9f6180a1cc2c02b67fe831b66498625861587038e230855d1eba8d771b076028381cc1699cb1004de7caf288713887a6c3418783fafffb030f5055e327c71139dcf630e2791a0c20c67687d98e637378eba1eeb17387050fc50fc50f5b1e67f5d0fe50fad0f76093c322e7aecb670fab1e267c6ded4bb39727bd08ecb6ff6e218bb1f16b67d9f9a5d2cb822f0bbe9ce9653267f2b5a6d77e59e69d5b8b42ef7d489e5b32f08aa5e3f93cd1e0c19e81d463a93c9aa3c1f37d541f9dcfad362096fd7cbecbd0a56393db86855f1f841a6e32ac555b5561348d01c700cdef2da4fd67e91fb11f457067a0816afcfac1980f9e0868b32aa67c30e57365dba8266bf99fe5e3b581d1313a46db51cd5e04b41dc2c704af472d2efdc4eecf35495e13348804b320d9c003882adc76e67a58ea892b857bcdb10ca7f3b30c672406c5bb01b2a553c11b60e10029dab2f843d987b2cfabf4de92016125c6b1cefadec206030ed0cf38cbcb2d3aa2e407253f8b0d57195bb7a4832c0d160d564ebf570a63e7f9814c83671f3ceb27258f4e336faa60dd40a6d9b4dab66d2f72ebb619bf95b69225771bd1b714adb6b7c6c5012562e162d352b5be176e6d4086d0be6c44d1a02c5e16af45627bd4688b7e1ff4fbd41d45017b50deb938abcd28062f06c7c5016dac5edca359a2a9d0bc020967d3b47184665a5ec809dbc2bd6f8dfcd657a44a5b69b3605b1e09df8d6f0e8b8d1f6c1cb0ca101b4b29b048bf64b940fec5c0810d320d0a0e3c4087dd1a8769688b929f61a2612294fc0c6f182646c98f35873f22e28049e682d94de418cdb935b20c857e9f61281cfc1cea1c2e8372e3c5aa7c01b33ec78287454c72ecc2b1d6b1d6b115871d0ee2389ce2787b2b60d300b13b54332e39563eef6d321b1d5e9bf5dee742da516a4095e55ec678f9e94bb7d779b5cd1836704b46d1d4dc6f5d50d36ce75e2abfad4ae5d7d6bd547ea98c6b5fd67a51cd7b4745b5987f7def73a1035131704b27106f5ec837475b697b6ee196b46f62f1e6f52d43cbd0d2965f80857203da46db21720c3b4644ad25545d8877896613cffd808e47695d58a000e1458e1a099f02395e0b052fb1c5fa691a9d736b645fd5979897f69314338b13f3dcc2021b641ad4ba50eb12c42e8cba9069624a1d9441520ba3aedbb96f212be18180a1458c6a02dbe5842f077b21d7e504ad3be518c040f14340f6d54667ebc52ca04106503cda004d719cf5476c7b8832ccda3a4b9546ab2fe86872565fa3d7fe2c865af667dd47bb8d12e0068ca21b26ce0a05327ba86ca1dbb5ad2ab65d7f1e350b6c0eb02db0cd26c05d4835a0f7f590f0a242da85529768363aff80369e209c0d647946c5ab01b2f465e2f2ceb56fc9701b8057174e0d10cb69cecf8ba1f42a2617ef26d0d7f6aa728ee21ca9847796c877a1da25f20d6c908599b36d8910d86fd512f30634d193a9db56f5ba257332536f23d9a9efa389b2b878f59df676d0b8698c6eef76b52de86301ee21f85dd8f76e23d25d3c09e7060a64d03842433574bb9c8ae128c37ac3684317616fe09688b5c7486f26f65d6321ee20c45d3876cd4b3ed4efe50e4b097117c20d14d04121816ee056c913d362230fe73d4eb4990f239d7d4ba6609663238ffd10d606a21e5a0ee8b58758379012ae0d44e4b535ac8466033a194110bbc4af0bb12e1b8f400305b49bf2a5a5903597bbf5d99f28b6bff7f9810213f8e9faa9e6d5f6379eba91e616b606883c3a96b18bdcd6bb95ee6340293589367b93e8db66a83946e7681fd563d4b1c22116b7d832005b281bd0f6deb608ffe2bb8102aa3f553ab92d073668a04d8d72a875bb6e060c68b27d4b27a0933a487623d9ed5eb305b101bd8798f551ec16806f6902615a9e2fb8a50d324a9a600b4bf72d2c9dcba0adb4cdb16fd51c618f8d573736dd0feb20d12d5edd62d52d56dd7eaa373add625181e046a75bd62010312cba85a27bdd5e2b2e86c0a51bb96c490191e3c609dbd9df4eef762cf795b7deb2d41df892627d335c9fd92c8034b7e0757b21016c401397d9bc45dcba7947340044357bd9cd4fb637ded4d9a5cdbb0b5db7d07523ddcd449b39b6ddd96c229add9b8ea2d980a19c455621a02d4707716fa1edc6c31b0f6ff1ed46c61b19073214196fb98500392ece438afd44b9d1f202096ad2b7784eb526ca155f29ae2bdb9097517dcdcb7591f1c6c3d2241be1eea643f35c99878d7b37ee0d10e3531838409898f3d6546a5b848137de8db988d52d9984869d5f840039669270d882da6bc8f95e48fb5062782736bd0616c06e94ba51ea16c56ebc1ac88242d92db110d066d5b12a9add42db8d6703da9cf51955676aa8330ed63096d876df1af71ab642c00143ed617eb6f32cb0418174e2dd8d77b7e037a083c31f1a1f8e8d7e3736c1bc5b9261cb2f6cf98580b63240fb28d048dc1bb0326712f3ee7315b1739990a2120c5b8261cb2d6cfbfc3a80af5dc4d009011adc92415c5f8a619b4f88bb45b60125fb21b310309e89ee625479efe4cc21b2ad4f5e8037e779c0065a6393925828116d491d14120ea86663ea4ab4016d40ce96735038b844b585884b545bd8d8fd2f8fa643de0c3410dd96b44209714b5aa184b885814b4ad6a1caf3059a1e4d0a8be856ca792ec9c0dc2d4d649e264f3de16e401b29ea49d2163a2e3985c2c485894b085ce25cf9c142bd25c22d116e2062cfed7894960eeb096203994e5ea0906d095deb8ac54d0be1ca31960c6d7901f981727b295795046b0d06444c0c5b320125135098b704b1b57292024678fb1ca912c9066ec9286610ce061e40b6c8d24d609bcbb60e4d4793ed48bc1030f2d544af6577f22f6e2e3985c2cde587b6f21b093230bf38258910c8847e000adb076e3533e2eac2b825a95b78bab691ac86ab03da8d6cabcc05f3f29d9c6960d0d166c39c100339eff55e19deba7e723d23be004850edeec335ff35bd75d170c93ad47d83bbba6443dd69af04a54a33a5307361e60009ee544673a7e2e8c5a7c4cb85b64b6222a08d77494c042cc0c57077352f47d485940b29df6544c4858aef7a72128593030631a48838f003da385c5f61b6938a0818e1b8d1103b07222bd390d0fe822a7f1ac6180b7a07b16e21e63205722e91ef7d353c5c78b838f4dca92d3977e09530eef558821fa1dd42b425d48d7154b9f671a40f55506ec9e99638f75a4d885b120f01ed3440af25735bd20f016d946161b16ec032bc5a5e2110590e8d604bd01b58a04024d06c401bd67811cc4b1b845bb8b6e41a4a382ca59447cd9e888b4bc221bfc626e634afed781d34c172e1e440b4936828741c20c27c57b9ab1d5bbd99bd3fee52fdfd030f28a03d3ab690b905cab968e95d3a36e1d8a8a5175a54dc18b97d266b5fc81a1bb71c434bebb61c83cf13790c3dda8fea6bc06ba670728b85db77ae96e06ddcdb3e46056e358bf968d3becbb42f2bed4b42fb26d068b591694bccb6a4414b1ab400b7c5b58d575b52b6a5735bbea0e50b5af2b585b32d9c0de820568636b88f29bd8938b6c5b18174c8be88685a08dba2d7f6cdab1169fbded588d485b39169fbd2d562d916cb36226d57f4c6a68d4d7d9969598276b16ed16ea3d546abed12dbbe7925820247c751b2a1feff7a2edc5a664dd81f88e7b728be85b52df5da82dec02de9288fa1ccbb2d2c4e6cd9d8c69a2db86dc16dfb4ed6825b0cd1f8b3f1a744668b7a5a7aa1c5b62db6ed6db785b58d3c1b5bb65fce964b68316cfb116c316c63d0c699ed27a7fd7888105b20dbd8bc9167e3cb469c8d345b46a1a98a831a9d34de68216d0b691b23765d25b85c5a72765a2ea1e51202e942918d22fbeebc98b5ef0edf4df4f1ac45af7d2d2d7510d0462d698316c7b610b6e50e1a5d36a66c24d972073209798c6725bcd9b208ed5b5acb22b42c82746fe3d216e9b6fc6d403b1587f5506bcb25b40f69ed435a0fc5646d037a6d8978b7c5bb8d5c5bbc1b30153d6ddcd842c4da22dd16e9b6546ecb30040cbd3a85471ab5262acf1218b4e56ea5421a8db64f618d41db07b096c06d5cdac833704b44d844ba20a083611083046e408d4fe7dfb056e3d496ab6dd4d958b345a88d305b70da12b38d225b4ed6f7c7c69001620e8e74420b581b25362790806d79850059eb62c816b08ec44260810d4e20877c04ab8320471261a45e07238e5ceb481b8cb4c120c811ad66e3f41e1dc70487dcd1714cfa928bca8312477a20bf9d0f2890b112ae01bd3910f1812f502a7216fa8d6a7c2a6098e9a558b3b78315c797aa418823bc1c5cc885c6157fc49983190364d7ad9250b31c8a0c34c84a72aa239d3a92a8e3ebc6f81381c19b014347db987db4113bb7a0f33e3f9041ecb8d8db17ab41ac234e1dd1692023d715a11b1a1d94e98637d872b0e5dce626aa6b348f1919402e6b70e5acbb5c1cd9511944e9a40c76744f1c5fa806438ee0720492c294418e831c473439a2c9418e831c4738395472431d71e5081f8757b8778dab3d4b98451c392e35e3a6322e2853f6051f3aade30f07c6bd7ec49283fb06f705b286a5eb4e6455a1dbe0bf9151cdc1d6e69d855123421a5fad1cf611a14c5d55781a261c71c0e0c171b11f9fafc45e79b4ff6e8d1895e453c71f120c061c49d2c1ce83e806d18dabfb880b07e5f93a3feef0e32f07c6691ec1e1e0b2406672891f1fa402daac73bd0eab21a5b93be5af03e6bebad772551fd1e1fca97ac1b1bd3e348d3b782ee91b1488123ee68f1bb684e920abf1197f7c6c1af7ea415623dc1b5f9b06630dc61a1f9ac63d5b9a358ff1dec67ac71bf9d034823ca1e8f9e49c4bbffa2b03f77fd77f177f1fbd723c2560cfcfbff341a3eeffaeff7905eab9ff0b46ddfca55c5dfea9875471aabc2b25a55e6947397f44402d5a9d70cb899e872a71f3fcf7fd20d037be163d45a02efbeefa6f2820626f3410848a417df38a7fbcb10f4a7de3666f3cd2bdff8d07c5b062ce370a4800c489dcfe116a5c099dfac3028c2a0380546960557366f0bffff3d73f3fff0711121ac4');
INSERT INTO golden_schema.snapshot_p01 VALUES ('acme', 4735389535593852289, 1, 2, 0, '\xaee76240a537be1f40aa92a578be3cca7ee2e4fe', '\x00612076696577', NULL, NULL);
INSERT INTO golden_schema.step_p01 VALUES ('acme', 4735389535593852289, 'r1', 1, 'action', 'look', 'call_1', 'done', '\x007b7d', '\x02edd4310d00000cc330d2e5af561a891dfe4c2059d41b6eeebccccccccccccccccccccf5c', '\x', '', 1, 1, 2);
INSERT INTO golden_schema.tree_p01 VALUES ('acme', 4735389535593852289, 2);
ALTER TABLE ONLY golden_schema.action
    ADD CONSTRAINT action_pkey PRIMARY KEY (tenant, root, name);
ALTER TABLE ONLY golden_schema.action_p00
    ADD CONSTRAINT action_p00_pkey PRIMARY KEY (tenant, root, name);
ALTER TABLE ONLY golden_schema.action_p01
    ADD CONSTRAINT action_p01_pkey PRIMARY KEY (tenant, root, name);
ALTER TABLE ONLY golden_schema.binding
    ADD CONSTRAINT binding_pkey PRIMARY KEY (tenant, root, agent, action);
ALTER TABLE ONLY golden_schema.binding_p00
    ADD CONSTRAINT binding_p00_pkey PRIMARY KEY (tenant, root, agent, action);
ALTER TABLE ONLY golden_schema.binding_p01
    ADD CONSTRAINT binding_p01_pkey PRIMARY KEY (tenant, root, agent, action);
ALTER TABLE ONLY golden_schema.body
    ADD CONSTRAINT body_pkey PRIMARY KEY (tenant, root, hash);
ALTER TABLE ONLY golden_schema.body_p00
    ADD CONSTRAINT body_p00_pkey PRIMARY KEY (tenant, root, hash);
ALTER TABLE ONLY golden_schema.body_p01
    ADD CONSTRAINT body_p01_pkey PRIMARY KEY (tenant, root, hash);
ALTER TABLE ONLY golden_schema.branch
    ADD CONSTRAINT branch_pkey PRIMARY KEY (tenant, root, branch);
ALTER TABLE ONLY golden_schema.branch_p00
    ADD CONSTRAINT branch_p00_pkey PRIMARY KEY (tenant, root, branch);
ALTER TABLE ONLY golden_schema.branch_p01
    ADD CONSTRAINT branch_p01_pkey PRIMARY KEY (tenant, root, branch);
ALTER TABLE ONLY golden_schema.claim
    ADD CONSTRAINT claim_pkey PRIMARY KEY (tenant, root, branch);
ALTER TABLE ONLY golden_schema.claim_p00
    ADD CONSTRAINT claim_p00_pkey PRIMARY KEY (tenant, root, branch);
ALTER TABLE ONLY golden_schema.claim_p01
    ADD CONSTRAINT claim_p01_pkey PRIMARY KEY (tenant, root, branch);
ALTER TABLE ONLY golden_schema.conversation
    ADD CONSTRAINT conversation_pkey PRIMARY KEY (tenant, root, name);
ALTER TABLE ONLY golden_schema.conversation_p00
    ADD CONSTRAINT conversation_p00_pkey PRIMARY KEY (tenant, root, name);
ALTER TABLE ONLY golden_schema.conversation_p01
    ADD CONSTRAINT conversation_p01_pkey PRIMARY KEY (tenant, root, name);
ALTER TABLE ONLY golden_schema.erasure
    ADD CONSTRAINT erasure_pkey PRIMARY KEY (tenant, root, number);
ALTER TABLE ONLY golden_schema.erasure_p00
    ADD CONSTRAINT erasure_p00_pkey PRIMARY KEY (tenant, root, number);
ALTER TABLE ONLY golden_schema.erasure_p01
    ADD CONSTRAINT erasure_p01_pkey PRIMARY KEY (tenant, root, number);
ALTER TABLE ONLY golden_schema.indexed
    ADD CONSTRAINT indexed_pkey PRIMARY KEY (tenant, root, branch);
ALTER TABLE ONLY golden_schema.indexed_p00
    ADD CONSTRAINT indexed_p00_pkey PRIMARY KEY (tenant, root, branch);
ALTER TABLE ONLY golden_schema.indexed_p01
    ADD CONSTRAINT indexed_p01_pkey PRIMARY KEY (tenant, root, branch);
ALTER TABLE ONLY golden_schema.message
    ADD CONSTRAINT message_pkey PRIMARY KEY (tenant, root, branch, "position");
ALTER TABLE ONLY golden_schema.message_p00
    ADD CONSTRAINT message_p00_pkey PRIMARY KEY (tenant, root, branch, "position");
ALTER TABLE ONLY golden_schema.message_p01
    ADD CONSTRAINT message_p01_pkey PRIMARY KEY (tenant, root, branch, "position");
ALTER TABLE ONLY golden_schema.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (version);
ALTER TABLE ONLY golden_schema.prompt
    ADD CONSTRAINT prompt_pkey PRIMARY KEY (tenant, root, name);
ALTER TABLE ONLY golden_schema.prompt_p00
    ADD CONSTRAINT prompt_p00_pkey PRIMARY KEY (tenant, root, name);
ALTER TABLE ONLY golden_schema.prompt_p01
    ADD CONSTRAINT prompt_p01_pkey PRIMARY KEY (tenant, root, name);
ALTER TABLE ONLY golden_schema.record
    ADD CONSTRAINT record_pkey PRIMARY KEY (tenant, root, branch, first);
ALTER TABLE ONLY golden_schema.record_p00
    ADD CONSTRAINT record_p00_pkey PRIMARY KEY (tenant, root, branch, first);
ALTER TABLE ONLY golden_schema.record_p01
    ADD CONSTRAINT record_p01_pkey PRIMARY KEY (tenant, root, branch, first);
ALTER TABLE ONLY golden_schema.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (tenant, root, id);
ALTER TABLE ONLY golden_schema.run_p00
    ADD CONSTRAINT run_p00_pkey PRIMARY KEY (tenant, root, id);
ALTER TABLE ONLY golden_schema.run_p01
    ADD CONSTRAINT run_p01_pkey PRIMARY KEY (tenant, root, id);
ALTER TABLE ONLY golden_schema.said
    ADD CONSTRAINT said_pkey PRIMARY KEY (tenant, root, branch, bucket, first);
ALTER TABLE ONLY golden_schema.said_p00
    ADD CONSTRAINT said_p00_pkey PRIMARY KEY (tenant, root, branch, bucket, first);
ALTER TABLE ONLY golden_schema.said_p01
    ADD CONSTRAINT said_p01_pkey PRIMARY KEY (tenant, root, branch, bucket, first);
ALTER TABLE ONLY golden_schema.snapshot
    ADD CONSTRAINT snapshot_pkey PRIMARY KEY (tenant, root, branch);
ALTER TABLE ONLY golden_schema.snapshot_p00
    ADD CONSTRAINT snapshot_p00_pkey PRIMARY KEY (tenant, root, branch);
ALTER TABLE ONLY golden_schema.snapshot_p01
    ADD CONSTRAINT snapshot_p01_pkey PRIMARY KEY (tenant, root, branch);
ALTER TABLE ONLY golden_schema.step
    ADD CONSTRAINT step_pkey PRIMARY KEY (tenant, root, run, number);
ALTER TABLE ONLY golden_schema.step_p00
    ADD CONSTRAINT step_p00_pkey PRIMARY KEY (tenant, root, run, number);
ALTER TABLE ONLY golden_schema.step_p01
    ADD CONSTRAINT step_p01_pkey PRIMARY KEY (tenant, root, run, number);
ALTER TABLE ONLY golden_schema.tree
    ADD CONSTRAINT tree_pkey PRIMARY KEY (tenant, root);
ALTER TABLE ONLY golden_schema.tree_p00
    ADD CONSTRAINT tree_p00_pkey PRIMARY KEY (tenant, root);
ALTER TABLE ONLY golden_schema.tree_p01
    ADD CONSTRAINT tree_p01_pkey PRIMARY KEY (tenant, root);
CREATE INDEX message_by_id ON ONLY golden_schema.message USING btree (tenant, root, substr(id, 1, 8));
CREATE INDEX message_p00_tenant_root_substr_idx ON golden_schema.message_p00 USING btree (tenant, root, substr(id, 1, 8));
CREATE INDEX message_p01_tenant_root_substr_idx ON golden_schema.message_p01 USING btree (tenant, root, substr(id, 1, 8));
CREATE INDEX run_by_number ON ONLY golden_schema.run USING btree (tenant, root, number);
CREATE INDEX run_p00_tenant_root_number_idx ON golden_schema.run_p00 USING btree (tenant, root, number);
CREATE INDEX run_p01_tenant_root_number_idx ON golden_schema.run_p01 USING btree (tenant, root, number);
ALTER INDEX golden_schema.action_pkey ATTACH PARTITION golden_schema.action_p00_pkey;
ALTER INDEX golden_schema.action_pkey ATTACH PARTITION golden_schema.action_p01_pkey;
ALTER INDEX golden_schema.binding_pkey ATTACH PARTITION golden_schema.binding_p00_pkey;
ALTER INDEX golden_schema.binding_pkey ATTACH PARTITION golden_schema.binding_p01_pkey;
ALTER INDEX golden_schema.body_pkey ATTACH PARTITION golden_schema.body_p00_pkey;
ALTER INDEX golden_schema.body_pkey ATTACH PARTITION golden_schema.body_p01_pkey;
ALTER INDEX golden_schema.branch_pkey ATTACH PARTITION golden_schema.branch_p00_pkey;
ALTER INDEX golden_schema.branch_pkey ATTACH PARTITION golden_schema.branch_p01_pkey;
ALTER INDEX golden_schema.claim_pkey ATTACH PARTITION golden_schema.claim_p00_pkey;
ALTER INDEX golden_schema.claim_pkey ATTACH PARTITION golden_schema.claim_p01_pkey;
ALTER INDEX golden_schema.conversation_pkey ATTACH PARTITION golden_schema.conversation_p00_pkey;
ALTER INDEX golden_schema.conversation_pkey ATTACH PARTITION golden_schema.conversation_p01_pkey;
ALTER INDEX golden_schema.erasure_pkey ATTACH PARTITION golden_schema.erasure_p00_pkey;
ALTER INDEX golden_schema.erasure_pkey ATTACH PARTITION golden_schema.erasure_p01_pkey;
ALTER INDEX golden_schema.indexed_pkey ATTACH PARTITION golden_schema.indexed_p00_pkey;
ALTER INDEX golden_schema.indexed_pkey ATTACH PARTITION golden_schema.indexed_p01_pkey;
ALTER INDEX golden_schema.message_pkey ATTACH PARTITION golden_schema.message_p00_pkey;
ALTER INDEX golden_schema.message_by_id ATTACH PARTITION golden_schema.message_p00_tenant_root_substr_idx;
ALTER INDEX golden_schema.message_pkey ATTACH PARTITION golden_schema.message_p01_pkey;
ALTER INDEX golden_schema.message_by_id ATTACH PARTITION golden_schema.message_p01_tenant_root_substr_idx;
ALTER INDEX golden_schema.prompt_pkey ATTACH PARTITION golden_schema.prompt_p00_pkey;
ALTER INDEX golden_schema.prompt_pkey ATTACH PARTITION golden_schema.prompt_p01_pkey;
ALTER INDEX golden_schema.record_pkey ATTACH PARTITION golden_schema.record_p00_pkey;
ALTER INDEX golden_schema.record_pkey ATTACH PARTITION golden_schema.record_p01_pkey;
ALTER INDEX golden_schema.run_pkey ATTACH PARTITION golden_schema.run_p00_pkey;
ALTER INDEX golden_schema.run_by_number ATTACH PARTITION golden_schema.run_p00_tenant_root_number_idx;
ALTER INDEX golden_schema.run_pkey ATTACH PARTITION golden_schema.run_p01_pkey;
ALTER INDEX golden_schema.run_by_number ATTACH PARTITION golden_schema.run_p01_tenant_root_number_idx;
ALTER INDEX golden_schema.said_pkey ATTACH PARTITION golden_schema.said_p00_pkey;
ALTER INDEX golden_schema.said_pkey ATTACH PARTITION golden_schema.said_p01_pkey;
ALTER INDEX golden_schema.snapshot_pkey ATTACH PARTITION golden_schema.snapshot_p00_pkey;
ALTER INDEX golden_schema.snapshot_pkey ATTACH PARTITION golden_schema.snapshot_p01_pkey;
ALTER INDEX golden_schema.step_pkey ATTACH PARTITION golden_schema.step_p00_pkey;
ALTER INDEX golden_schema.step_pkey ATTACH PARTITION golden_schema.step_p01_pkey;
ALTER INDEX golden_schema.tree_pkey ATTACH PARTITION golden_schema.tree_p00_pkey;
ALTER INDEX golden_schema.tree_pkey ATTACH PARTITION golden_schema.tree_p01_pkey;
ALTER TABLE golden_schema.action
    ADD CONSTRAINT action_tenant_root_default_compact_prompt_fkey FOREIGN KEY (tenant, root, default_compact_prompt) REFERENCES golden_schema.prompt(tenant, root, name);
ALTER TABLE golden_schema.binding
    ADD CONSTRAINT binding_tenant_root_action_fkey FOREIGN KEY (tenant, root, action) REFERENCES golden_schema.action(tenant, root, name);
ALTER TABLE golden_schema.binding
    ADD CONSTRAINT binding_tenant_root_compact_prompt_fkey FOREIGN KEY (tenant, root, compact_prompt) REFERENCES golden_schema.prompt(tenant, root, name);
