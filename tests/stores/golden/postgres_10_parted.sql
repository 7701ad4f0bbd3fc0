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
    body bytea NOT NULL
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.snapshot_p00 (
    tenant text CONSTRAINT snapshot_tenant_not_null NOT NULL,
    root bigint CONSTRAINT snapshot_root_not_null NOT NULL,
    branch bigint CONSTRAINT snapshot_branch_not_null NOT NULL,
    "position" bigint CONSTRAINT snapshot_position_not_null NOT NULL,
    number bigint CONSTRAINT snapshot_number_not_null NOT NULL,
    hash bytea CONSTRAINT snapshot_hash_not_null NOT NULL,
    body bytea CONSTRAINT snapshot_body_not_null NOT NULL
);
CREATE TABLE golden_schema.snapshot_p01 (
    tenant text CONSTRAINT snapshot_tenant_not_null NOT NULL,
    root bigint CONSTRAINT snapshot_root_not_null NOT NULL,
    branch bigint CONSTRAINT snapshot_branch_not_null NOT NULL,
    "position" bigint CONSTRAINT snapshot_position_not_null NOT NULL,
    number bigint CONSTRAINT snapshot_number_not_null NOT NULL,
    hash bytea CONSTRAINT snapshot_hash_not_null NOT NULL,
    body bytea CONSTRAINT snapshot_body_not_null NOT NULL
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
INSERT INTO golden_schema.indexed_p01 VALUES ('acme', 4735389535593852289, 1, 3, 1);
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
INSERT INTO golden_schema.prompt_p01 VALUES ('acme', 2555229902990548286, 'short', '{{ text }}', '', '');
INSERT INTO golden_schema.record_p01 VALUES ('acme', 4735389535593852289, 1, 1, '\xd11f3c853eb141232c9a35c8c9e550563d761815', '\x028d95410b02211085ff4a74eea099eeda5f893dcca4434254aced21faf3bd9985a05bde149edf43de1bdf68c4dcb1f7c85769bf984b2b550570599f9611d5e74395bd487289a2701c3c8be71c0271181dc7517ca4542a94a76982f9fbb59d5f86ef2a5fdfddccae5f0bdd364a861fa0303fb7c7b0b332c3d490dd77e9e103bafff960f7a6f5b72b69c1e499359146fb00');
INSERT INTO golden_schema.run_p01 VALUES ('acme', 4735389535593852289, 'r1', 1, 'me', 'one', '', 'done', '\x020317c389c5d900', '\x00646f6e65', '\x', 1, NULL, NULL, NULL, NULL, NULL, NULL, 1, 2);
INSERT INTO golden_schema.said_p01 VALUES ('acme', 4735389535593852289, 1, -1, 1, 3, '\x789cedda5daeed386e05e0eabc0438a339db124979380d04081a08aa81bc64a21950d6a71a451adb555e573f944453d4da347dfef6bffffec71feebf7dafeff5bdbed7f7fa5edfeb5fe2fae37b7dafeff5bdbed7f7fa5eff12d7bf7dafeff5bdbed7f7fa5edfebfffff5b73fbeefe9dfeb7b7dafeff5bdbed7bfc8f5fbf3f9f9047eefbd41053e17069cc0a3635dd0b175d40354abc11b686dadda44c6dca36dc88db6a3ed98ea683b86dd9b02ef02a95e7d324b80769fcf03743c07282d1d2bd37db6fb161630aadcdaebd60c6ad501c7482b67d6c722cfef8003347fdc1732e173abcf2d65da671bb56f89ac42e9b4dcc3200f333c7d4b2667066a3f9efd7989bdda5f8bbee958d65a1e63517c3dee5fb080f6670059cfbe56c6af4dc4232fdaacad57c123af32c0a62cda2cdaac26d1da860833aca3972d16bb6f36d8ecb2a9b3997c7bc4adf617dc1ab1fe059969dbdedb7416b835ed46dbd8fd9ad1936fabd4affb010b6c10792e551ebc98bc9e5bd5e9c18b596a29d9ebb2cd65852a555b509eb78688e5ebc406f9979efd7be1010b44a83d62f3f2f69cecd4566f666f0b376337c76f966dabf7d2a6e631da86777f8051b7c386f7a8daf1668fbeba1ce319bbefad93659adff71bb1a1dc50ce1cc3f79d9f6180a1cc2c02b67fe831b66498625861587038e230855d1eba8d671b076028381cc1699cb1004de7caf288713887a6c3418783fafff7031ea0aac64f8e2372b8ed61c4f33418408ced0eb31dc7e6f0d643dd63e70e0b1e8a1f8a1fb63cceeaa1fda1f4a1efc1268745ce5d97cf1e563d4cf8dada97662f4f7a11d86dffdc421663e3d7ceb2f34ba597055f167c39d3cb64cee46b4d8ffdb2cc3bb71685de7b933cb764e0154bc7f3f34483077b06528fa5726b8e06cfefa3fae87c6eb501b1ece7f3bb0c5d3a36b96d58f8f541a8e126c35ab5551546d318700cd0fcde42da3f96fe10fb500477061aa8c6af1f8cf9e0898036ab62ca07533e57b68d6ab296ff583e5e1b181da363b41dd5ec4540db217c4cf0bad5e2d24fecfe5c93e431418348300b920d3c80a8c26d67ae87a59eb852b8d71ccb703a3fcb70466250bc1b205b3a153c01160e90a22d8b3f947d28fbbc4aef2d191056621cebacdf5bd860c001fa196779b8454794fca0e467b1e12a63eb967490a5c1a2c1cae9f74861ecdc1f9069f0ec8367fda4e4d669e64d15ac1bc8349b56dbb6ed456edd36e3b7d256b2e46e23fa96a2d5f6d4b838a0442c5c6c5aaad6ef855b1b9021b42f1b5134288b97c56b91d86e35daa2df07fd3e754751c01e94672ece6a338ac18bc17171401bab17f76896682a34af40c2d9346d1ca199961772c2b670ef5b23bff515a9d256da2cd89647c277e39bc362e3071b07ac32c4c6520a2cd22f592e907f317060834c8382030fd061b7c6611adaa2e46798689808253fc31b868951f263cde18f88386092b96076133946736e8d2c43a1df67180a073f873a87cba0dc78b12a5fc0accfb1e06111931cbb70ac75ac756cc5618783380ea7389ede0ad83440ec0ed58c4b8e95cf7b9bcc4687d766bdf7be9076941a5065b997315e7efad2ed755e6d33860ddc92513435f75b17d434dbb997ca6fab52f9b5752f955f2ae3da97b55e54f3de51512de65fbff7bed081a818b8a51388372fe49ba3adb4ddb7704bda37b178f3fa2d43cbd0d2965f80857203da46db21720c3b4644ad25545d8877896613cf7d808e47695d58a000e1458e1a099f02395e0b052fb1c5fa681a9d736b645fd5979887f69314338b1373dfc2021b641ad4ba50eb12c42e8cba9069624a1d9441520ba3aedbb96f212be18180a1458c6a02dbe5842f077b21d7e504ad3be518c040f14340f6d54667ebc52ca04106503cda004d719cf597d876136598b575962a8d565fd0d1e4acbe46affd590cb5eccfbab7761b25c00d1845374c9c150a64f650d942b76b5b556cbbfebad52cb039c0b6c0369b007721d580ded74dc2830a69174a5da2d9e8fc01da7882703690e51915af06c8d29789cb33d7be25c36d005e5d3835402ca7393f2f86d2ab985cbc9b405fdbabca398a73a412de5922df856a97c837b0411666ceb6254260bf554bcc1bd0444fa66e5bd5eb96ccc94cbd8d64a7beb726cae2e2d577dadb41e3a631babddbd5b6a08f05b887e07761dfbb8d4877f1249c1b289041e3080dd5d0ed722a86a30ceb0da30d5d84bd815b22d66e233d99d8778d85b8831077e1d8352ff950bf873b2c25c45d08375040078504ba815b254f4c8b8d3c9cf738d1663e8c74f62d9982598e8d3cf643581b887a6839a0d71e62dd404ab8361091d7d6b0129a0de8640441ec12bf2ec4ba6c3c020d14d06eca979642d6bcdcad9ffd13c5f6efbd3fa0c0043eba3eaa79b4fd1b4fdd48730b5b03441e1dcbd8456eebdd4af736a0949a449bbd49f46d33d41ca373b48fea31ea58e1108b5b6c19802d940d687b6f5b843ff1dd4001d58f2a9dbc2d073668a04d8d72a8757bdd0c18d064fb964e40277590ec46b2db7bcd16c406f41e62d647b15b00bea5098469b97fc12d6d9051d2045b58ba6f61e95c066da56d8e7dabe6087b6cbcbab1e97e5807896ef1ea16ab6eb1eaf653bdd1e9168b0a04373addb206818861d12d14ddebf65a7131042eddc8654b0a881c374ed8cefe767ab763b9afbcf596a5eec09714eb9be1facc6601a4b905afdb030960039ab8cce62de2d6cd3ba20120aad9c36e7eb23df1a6ce2e6d9e5de8ba85ae1be96e26daccb1edce6613d1ecde7414cd060ce52cb20a016d393a887b0b6d371ede78788b6f3732dec83890a1c878cb2d04c871711e52ec27ca8d9617485093bec573aa3551aef84a715dd9863c8cea6b5eae8b8c371e9626d90877371d9ae7ca3c6cdcbb716f80189fc2c001c2c49cb7a652db220cbcf16ecc45ac6ec92434ecfc2204c8319384c316d45e43ceef85b40f25867762d36b6001ec46a91ba56e51ecc6ab812c2894dd120b016d561daba2d92db4dd7836a0cd599f5175a6863ae3600d63896df7ad71af612b041c30d41ee6673bf7021b144827dedd78770b7e033a38fca1f1e1d8e8776313ccbb2519b6fcc2965f08682b03b48f028dc4bd012b732631ef3e57113b9709292ac1b02518b6dcc2b6cfaf03f8da450c9d10a0c12d19c4f5a518b6f984b85b641b50b21f320b01e399e82e4695f74ece1c22dbfac903f0e6dc0fd8406b6c52120b25a22da98342c201d56c4c5d8936a00dc8d9720e0a0797a8b61071896a0b1b7bffcbade99037030d44b725ad5042dc925628216e61e0929275a872ff024d8f268545742be53c976460de2d4d649e264f3de16e401b29ea49d2163a2e3985c2c485894b085ce25cf9c142bd25c22d116e2062cfed7894960eeb096203994e5ea0906d095deb8ac54d0be1ca31960c6d7900f981f2f6525e5512ac35181031316cc904944c4061de12c4d6ca490a18e1e973a44a241bb825a39841381b7800d9224b37816d5eb675683a9a6c47e2858091af267a2dbb937f7173c929146e2e3fb495df489081f9c52949844026f40350d83e70ab99115717c62d49ddc2d3b58d64355c1dd06e645b652e9897efe44c03838e361be68418c879aff7caf0d6f593eb19f10540826a771faef9afe9ad8b864bd6a1ee13dcd5251bea4e7b2528559a2985990b33074870a7329a3b15472f3e255e2eb45d1213016dbc4b622260012e86bbab7939a22ea45c48f92e23222e547cd79393289c1c30882145c4810fd0c6e1fa0ab39d5444c008c78d86d8391059998684f61754f9d330c658d03388750b3197299073897cefa3e1e1c2c3c5a1e74e6dc9b903af8471afdb12fc08ed16a22da16e8ca3cab58f237da882724b4eb7c4b9d76a42dc92780868a7017a2d99db927e0868a30c0b8b750396e1d5f20a81c87268045b82dec0020522816603dab0c68b605eda20dcc2b525d750c26129a5dc6af6445c5c120ef9353631a7796dc7eba009960b2707a29d4443a1e30011e6bbca5dedd8eacdecfde35daa7fff820714d01e1d5bc8dc02e5bc68e95d3a36e1d8a8a5175a54dc18b97d266b5fc81a1bb71c434bebb61c83cf13b90d3dda8fea6bc06ba670728b85db77ae96e06ddcdb3e46056e358bf968d3becbb42f2bed4b42fb26d068b591694bccb6a4414b1ab400b7c5b58d575b52b6a5735bbea0e50b5af2b585b32d9c0de820568636b8b7293d8938b6c5b18174c8be88685a08dba2d7f6cdab1169fbded588d40b6723d3f6a5abc5b22d966d44da5ed11b9b3636f565a66509da8b758b761bad365a6d2fb1ed9b57222870741c251beaff5ff7855bcbac09fb03f1fc16c5b7b0b6a55e5bd01bb8251de5369479b785c5892d1bdb58b305b72db86ddfc95a708b211a7f36fe94c86c514f4b2fb4d8b6c5b6bdedb6b0b6916763cbf6cbd972092d866d3f822d866d0cda38b3fde4b41f0f11620b641b9b37f26c7cd988b39166cb2834557150a393c61b2da46d216d63c4aeab04974b4bce4ecb25b45c42205d28b25164df9d17b3f6dde1bb893e9eb5e8b5afa5a50e02daa8256dd0e2d816c2b6dc41a3cbc6948d245bee402621b7f1ac84375b16a17d4b6b5984964590ee6d5cda22dd96bf0d68a7e2b01e6a6db984f621ad7d48eba198ac6d40af2d11efb678b7916b8b7703a6a2a78d1b5b88585ba4db22dd96ca6d198680a157a7f048a3d644e5590283b6dcad5448a3d1f629ac3168fb00d612b88d4b1b79066e89089b48170474300c6290c00da8f1e9fc1bd66a9cda72b58d3a1b6bb608b511660b4e5b62b65164cbc9fafed8183240ccc1914e68016ba3c4e60412b02daf10206b5d0cd902d69158082cb0c109e4908f607510e448228cd4eb60c4916b1d69839136180439a2d56c9cdea3e398e0903b3a8e495f72517950e2480fe4b7f301053256c235a03707223ef00b948a9c853ea31a9f0a18667a29d6eced60c5f1a56a10e2082f071772a1f18a3fe2ccc18c01b2eb5649a8590e45061a642539d5914e1d49d4f17563fc89c0e0cd80a1a36dcc3eda889d5bd079ef0fc820765ceced8bd520d611a78ee8349091eb8ad00d8d0ecaf48637d872b0e5dce626aa6b348f1919402e6b70e5acbb5c1cd9511944e9a40c76f49e38be500d861cc1e508248529831c07398e68724493831c07398e7072a8e40d75c495237c1c5ee1bd6bbcdab38459c491e3a566bca98c179429fb820f9dd6f18703e3bd7ec49283fb06f705b286a5eb4e6455a1dbe0bf9151cdc1d6e699855123421a5fad1cf611a14c5d55781a261c71c0e0c1f1623f3e5f89bd726bffdc1a312ac9a78e3f24180c3892a4839d07d10da21bafee232e1c94e7ebfc78871f7f39304ef3080e079705329397f8f1412aa0cd3ad7ebb01a529abb53fe3a60eea37b2cafea233a9cbfaa1e706caf0f4de31d3c2fe91b1488123ee68f376c09d34156e333fef8d834deab07598d706f7c6d1a8c35186b7c681aefd9d2acb98df734d63b9ec887a611e40945cf4fceb9f4abbf32f0feeff5df8bbf8f5e399e12b0e7e3dff941a3deffbdfee711a8e7fd5f30eacd5fcad5cb3ff5902a4e9577a5a4d42bed28e78f08a845ab136e39d1f350256e9eff7e7f10e81b5f8b9e22502ffbdef5df5040c4de6820081583fae615ff78631f94fac6cdde78a4f7fe371e14c38a39df2820011027f2f68f50e34ae8d41f1660541900a44a03ab9a3383ffeb9f7ffee7cf9ffffcf9efbfffe3cf9ffff9c79ffff17f852a872e');
INSERT INTO golden_schema.snapshot_p01 VALUES ('acme', 4735389535593852289, 1, 2, 0, '\xaee76240a537be1f40aa92a578be3cca7ee2e4fe', '\x00612076696577');
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
