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
    place bigint NOT NULL
)
PARTITION BY HASH (root);
CREATE TABLE golden_schema.indexed_p00 (
    tenant text CONSTRAINT indexed_tenant_not_null NOT NULL,
    root bigint CONSTRAINT indexed_root_not_null NOT NULL,
    branch bigint CONSTRAINT indexed_branch_not_null NOT NULL,
    "position" bigint CONSTRAINT indexed_position_not_null NOT NULL,
    place bigint CONSTRAINT indexed_place_not_null NOT NULL
);
CREATE TABLE golden_schema.indexed_p01 (
    tenant text CONSTRAINT indexed_tenant_not_null NOT NULL,
    root bigint CONSTRAINT indexed_root_not_null NOT NULL,
    branch bigint CONSTRAINT indexed_branch_not_null NOT NULL,
    "position" bigint CONSTRAINT indexed_position_not_null NOT NULL,
    place bigint CONSTRAINT indexed_place_not_null NOT NULL
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
    "position" bigint NOT NULL,
    place bigint NOT NULL,
    words text NOT NULL
)
PARTITION BY HASH (root);
ALTER TABLE ONLY golden_schema.said REPLICA IDENTITY FULL;
CREATE TABLE golden_schema.said_p00 (
    tenant text CONSTRAINT said_tenant_not_null NOT NULL,
    root bigint CONSTRAINT said_root_not_null NOT NULL,
    branch bigint CONSTRAINT said_branch_not_null NOT NULL,
    "position" bigint CONSTRAINT said_position_not_null NOT NULL,
    place bigint CONSTRAINT said_place_not_null NOT NULL,
    words text CONSTRAINT said_words_not_null NOT NULL
);
ALTER TABLE ONLY golden_schema.said_p00 REPLICA IDENTITY FULL;
CREATE TABLE golden_schema.said_p01 (
    tenant text CONSTRAINT said_tenant_not_null NOT NULL,
    root bigint CONSTRAINT said_root_not_null NOT NULL,
    branch bigint CONSTRAINT said_branch_not_null NOT NULL,
    "position" bigint CONSTRAINT said_position_not_null NOT NULL,
    place bigint CONSTRAINT said_place_not_null NOT NULL,
    words text CONSTRAINT said_words_not_null NOT NULL
);
ALTER TABLE ONLY golden_schema.said_p01 REPLICA IDENTITY FULL;
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
INSERT INTO golden_schema.indexed_p01 VALUES ('acme', 4735389535593852289, 1, 3, 2545614415);
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
INSERT INTO golden_schema.prompt_p01 VALUES ('acme', 2555229902990548286, 'short', '{{ text }}', '', '');
INSERT INTO golden_schema.record_p01 VALUES ('acme', 4735389535593852289, 1, 1, '\xd11f3c853eb141232c9a35c8c9e550563d761815', '\x028d95410b02211085ff4a74eea099eeda5f893dcca4434254aced21faf3bd9985a05bde149edf43de1bdf68c4dcb1f7c85769bf984b2b550570599f9611d5e74395bd487289a2701c3c8be71c0271181dc7517ca4542a94a76982f9fbb59d5f86ef2a5fdfddccae5f0bdd364a861fa0303fb7c7b0b332c3d490dd77e9e103bafff960f7a6f5b72b69c1e499359146fb00');
INSERT INTO golden_schema.run_p01 VALUES ('acme', 4735389535593852289, 'r1', 1, 'me', 'one', '', 'done', '\x020317c389c5d900', '\x00646f6e65', '\x', 1, NULL, NULL, NULL, NULL, NULL, NULL, 1, 2);
INSERT INTO golden_schema.said_p01 VALUES ('acme', 4735389535593852289, 1, 1, 2545614415, 'rain');
INSERT INTO golden_schema.said_p01 VALUES ('acme', 4735389535593852289, 1, 2, 2545614415, 'no wind');
INSERT INTO golden_schema.said_p01 VALUES ('acme', 4735389535593852289, 1, 3, 2545614415, 'long 0 1 4 9 16 25 36 49 64 81 100 121 144 169 196 225 256 289 324 361 400 441 484 529 576 625 676 729 784 841 900 961 1024 1089 1156 1225 1296 1369 1444 1521 1600 1681 1764 1849 1936 2025 2116 2209 2304 2401 2500 2601 2704 2809 2916 3025 3136 3249 3364 3481 3600 3721 3844 3969 4096 4225 4356 4489 4624 4761 4900 5041 5184 5329 5476 5625 5776 5929 6084 6241 6400 6561 6724 6889 7056 7225 7396 7569 7744 2 181 362 545 730 917 1106 1297 1490 1685 1882 2081 2282 2485 2690 2897 3106 3317 3530 3745 3962 4181 4402 4625 4850 5077 5306 5537 5770 6005 6242 6481 6722 6965 7210 7457 7706 38 291 546 803 1062 1323 1586 1851 2118 2387 2658 2931 3206 3483 3762 4043 4326 4611 4898 5187 5478 5771 6066 6363 6662 6963 7266 7571 7878 268 579 892 1207 1524 1843 2164 2487 2812 3139 3468 3799 4132 4467 4804 5143 5484 5827 6172 6519 6868 7219 7572 8 365 724 1085 1448 1813 2180 2549 2920 3293 3668 4045 4424 4805 5188 5573 5960 6349 6740 7133 7528 6 405 806 1209 1614 2021 2430 2841 3254 3669 4086 4505 4926 5349 5774 6201 6630 7061 7494 10 447 886 1327 1770 2215 2662 3111 3562 4015 4470 4927 5386 5847 6310 6775 7242 7711 263 736 1211 1688 2167 2648 3131 3616 4103 4592 5083 5576 6071 6568 7067 7568 152 657 1164 1673 2184 2697 3212 3729 4248 4769 5292 5817 6344 6873 7404 18 553 1090 1629 2170 2713 3258 3805 4354 4905 5458 6013 6570 7129 7690 334 899 1466 2035 2606 3179 3754 4331 4910 5491 6074 6659 7246 7835 507 1100 1695 2292 2891 3492 4095 4700 5307 5916 6527 7140 7755 453 1072 1693 2316 2941 3568 4197 4828 5461 6096 6733 7372 94 737 1382 2029 2678 3329 3982 4637 5294 5953 6614 7277 23 690 1359 2030 2703 3378 4055 4734 5415 6098 6783 7470 240 931 1624 2319 3016 3715 4416 5119 5824 6531 7240 32 745 1460 2177 2896 3617 4340 5065 5792 6521 7252 66 801 1538 2277 3018 3761 4506 5253 6002 6753 7506 342 1099 1858 2619 3382 4147 4914 5683 6454 7227 83 860 1639 2420 3203 3988 4775 5564 6355 7148 24 821 1620 2421 3224 4029 4836 5645 6456 7269 165 982 1801 2622 3445 4270 5097 5926 6757 7590 506 1343 2182 3023 3866 4711 5558 6407 7258 192 1047 1904 2763 3624 4487 5352 6219 7088 40 913 1788 2665 3544 4425 5308 6193 7080 50 941 1834 2729 3626 4525 5426 6329 7234 222 1131 2042 2955 3870 4787 5706 6627 7550 556 1483 2412 3343 4276 5211 6148 7087 109 1052 1997 2944 3893 4844 5797 6752 7709 749 1710 2673 3638 4605 5574 6545 7518 574 1551 2530 3511 4494 5479 6466 7455 527 1520 2515 3512 4511 5512 6515 7520 608 1617 2628 3641 4656 5673 6692 7713 817 1842 2869 3898 4929 5962 6997 115 1154 2195 3238 4283 5330 6379 7430 564 1619 2676 3735 4796 5859 6924 72 1141 2212 3285 4360 5437 6516 7597 761 1846 2933 4022 5113 6206 7301 479 1578 2679 3782 4887 5994 7103 295 1408 2523 3640 4759 5880 7003 209 1336 2465 3596 4729 5864 7001 221 1362 2505 3650 4797 5946 7097 331 1486 2643 3802 4963 6126 7291 539 1708 2879 4052 5227 6404 7583 845 2028 3213 4400 5589 6780 54 1249 2446 3645 4846 6049 7254 542 1751 2962 4175 5390 6607 7826 1128 2351 3576 4803 6032 7263 577 1812 3049 4288 5529 6772 98 1345 2594 3845 5098 6353 7610 950 2211 3474 4739 6006 7275 627 1900 3175 4452 5731 7012 376 1661 2948 4237 5528 6821 197 1494 2793 4094 5397 6702 90 1399 2710 4023 5338 6655 55 1376 2699 4024 5351 6680 92 1425 2760 4097 5436 6777 201 1546 2893 4242 5593 6946 382 1739 3098 4459 5822 7187 635 2004 3375 4748 6123 7500 960 2341 3724 5109 6496 7885 1357 2750 4145 5542 6941 423 1826 3231 4638 6047 7458 952 2367 3784 5203 6624 128 1553 2980 4409 5840 7273 789 2226 3665 5106 6549 75 1522 2971 4422 5875 7330 868 2327 3788 5251 6716 264 1733 3204 4677 6152 7629 1189 2670 4153 5638 7125 695 2186 3679 5174 6671 251 1752 3255 4760 6267 7776 1368 2881 4396 5913 7432 1034 2557 4082 5609 7138 750 2283 3818 5355 6894 516 2059 3604 5151 6700 332 1885 3440 4997 6556 198 1761 3326 4893 6462 114 1687 3262 4839 6418 80 1663 3248 4835 6424 96 1689 3284 4881 6480 162 1765 3370 4977 6586 278 1891 3506 5123 6742 444 2067 3692 5319 6948 660 2293 3928 5565 7204 926 2569 4214 5861 7510 1242 2895 4550 6207 7866 1608 3271 4936 6603 353 2024 3697 5372 7049 809 2490 4173 5858 7545 1315 3006 4699 6394 172 1871 3572 5275 6980 768 2477 4188 5901 7616 1414 3133 4854 6577 383 2110 3839 5570 7303 1119 2856 4595 6336 160 1905 3652 5401 7152 986 2741 4498 6257 99 1862 3627 5394 7163 1015 2788 4563 6340 200 1981 3764 5549 7336 1206 2997 4790 6585 463 2262 4063 5866 7671 1559 3368 5179 6992 888 2705 4524 6345 249 2074 3901 5730 7561 1475 3310 5147 6986 908 2751 4596 6443 373 2224 4077 5932 7789 1729 3590 5453 7318 1266 3135 5006 6879 835 2712 4591 6472 436 2321 4208 6097 69 1962 3857 5754 7653 1635 3538 5443 7350 1340 3251 5164 7079 1077 2996 4917 6840 846 2773 4702 6633 647 2582 4519 6458 480 2423 4368 6315 345 2296 4249 6204 242 2201 4162 6125 171 2138 4107 6078 132 2107 4084 6063 125 2108 4093 6080 150 2141 4134 6129 207 2206 4207 6210 296 2303 4312 6323 417 2432 4449 6468 570 2593 4618 6645 755 2786 4819 6854 972 3011 5052 7095 1221 3268 5317 7368 1502 3557 5614 7673 1815 3878 5943 91 2160 4231 6304 460 2537 4616 6697 861 2946 5033 7122 1294 3387 5482 7579 1759 3860 5963 149 2256 4365 6476 670 2785 4902 7021 1223 3346 5471 7598 1808 3939 6072 288 2425 4564 6705 929 3074 5221 7370 1602 3755 5910 148 2307 4468 6631 877 3044 5213 7384 1638 3813 5990 250 2431 4614 6799 1067 3256 5447 7640 1916 4113 6312 594 2797 5002 7209 1499 3710 5923 219 2436 4655 6876 1180 3405 5632 7861 2173 4406 6641 959 3198 5439 7682 2008 4255 6504 836 3089 5344 7601 1941 4202 6465 811 3078 5347 7618 1972 4247 6524 884 3165 5448 7733 2101 4390 6681 1055 3350 5647 27 2328 4631 6936 1324 3633 5944 338 2653 4970 7289 1691 4014 6339 747 3076 5407 7740 2156 4493 6832 1254 3597 5942 370 2719 5070 7423 1859 4216 6575 1017 3380 5745 193 2562 4933 7306 1762 4139 6518 980 3363 5748 216 2605 4996 7389 1865 4262 6661 1143 3546 5951 439 2848 5259 7672 2168 4585 7004 1506 3929 6354 862 3291 5722 236 2671 5108 7547 2069 4512 6957 1485 3934 6385 919 3374 5831 371 2832 5295 7760 2308 4777 7248 1802 4277 6754 1314 3795 6278 844 3331 5820 392 2885 5380 7877 2457 4958 7461 2047 4554 7063 1655 4168 6683 1281 3800 6321 925 3450 5977 587 3118 5651 267 2804 5343 7884 2508 5053 7600 2230 4781 7334 1970 4527 7086 1728 4291 6856 1504 4073 6644 1298 3873 6450 1110 3691 6274 940 3527 6116 788 3381 5976 654 3253 5854 538 3143 5750 440 3051 5664 360 2977 5596 298 2921 5546 254 2883 5514 228 2863 5500 220 2861 5504 230 2877 5526 258 2911 5566 304 2963 5624 368 3033 5700 450 3121 5794 550 3227 5906 668 3351 6036 804 3493 6184 958 3653 6350 1130 3831 6534 1320 4027 6736 1528 4241 6956 1754 4473 7194 1998 4723 7450 2260 4991 7724 2540 5277 97 2838 5581 407 3154 5903 735 3488 6243 1081 3840 6601 1445 4210 6977 1827 4598 7371 2227 5004 7783 2645 5428 294 3081 5870 742 3535 6330 1208 4007 6808 1692 4497 7304 2194 5005 7818 2714 5531 431 3252 6075 981 3808 6637 1549 4382 7217 2135 4974 7815 2739 5584 512 3361 6212 1146 4001 6858 1798 4659 7522 2468 5335 285 3156 6029 985 3862 6741 1703 4586 7471 2439 5328 300 3193 6088 1066 3965 6866 1850 4755 7662 2652 5563 557 3472 6389 1389 4310 7233 2239 5166 176 3107 6040 1056 3993 6932 1954 4897 7842 2870 5819 851 3804 6759 1797 4756 7717 2761 5726 774 3743 6714 1768 4743 7720 2780 5761 825 3810 6797 1867 4858 7851 2927 5924 1004 4005 7008 2094 5101 191 3202 6215 1311 4328 7347 2449 5472 578 3605 6634 1746 4779 7814 2932 5971 1093 4136 7181 2309 5358 490 3543 6598 1736 4795 7856 3000 6065 1213 4282 7353 2507 5582 740 3819 6900 2064 5149 317 3406 6497 1671 4766 7863 3043 6144 1328 4433 7540 2730 5841 1035 4150 7267 2467 5588 792 3917 7044 2254 5385 599 3734 6871 2091 5232 456 3601 6748 1978 5129 363 3518 6675 1915 5076 320 3485 6652 1902 5073 327 3502 6679 1939 5120 384 3569 6756 2026 5217 491 3686 6883 2163 5364 648 3853 7060 2350 5561 855 4070 7287 2587 5808 1112 4337 7564 2874 6105 1419 4654 7891 3211 6452 1776 5021 349 3598 6849 2183 5438 776 4035 7296 2640 5905 1253 4522 7793 3147 6422 1780 5059 421 3704 6989 2357 5646 1018 4311 7606 2984 6283 1665 4968 354 3661 6970 2362 5675 1071 4388 7707 3109 6432 1838 5165 575 3906 7239 2655 5992 1412 4753 177 3522 6869 2299 5650 1084 4439 7796 3236 6597 2041 5406 854 4223 7594 3048 6423 1881 5260 722 4105 7490 2958 6347 1819 5212 688 4085 7484 2966 6369 1855 5262 752 4163 7576 3072 6489 1989 5410 914 4339 7766 3276 6707 2221 5656 1174 4613 135 3578 7023 2551 6000 1532 4985 521 3978 7437 2979 6442 1988 5455 1005 4476 30 3505 6982 2542 6023 1587 5072 640 4129 7620 3194 6689 2267 5766 1348 4851 437 3944 7453 3045 6558 2154 5671 1271 4792 396 3921 7448 3058 6589 2203 5738 1356 4895 517 4060 7605 3233 6782 2414 5967 1603 5160 800 4361 5 3570 7137 2787 6358 2012 5587 1245 4824 486 4069 7654 3322 6911 2583 6176 1852 5449 1129 4730 414 4019 7626 3316 6927 2621 6236 1934 5553 1255 4878 584 4211 7840 3552 7185 2901 6538 2258 5899 1623 5268 996 4645 377 4030 7685 3423 7082 2824 6487 2233 5900 1650 5321 1075 4750 508 4187 7868 3632 7317 3085 6774 2546 6239 2015 5712 1492 5193 977 4682 470 4179 7890 3684 7399 3197 6916 2718 6441 2247 5974 1784 5515 1329 5064 882 4621 443 4186 12 3759 7508 3340 7093 2929 6686 2526 6287 2131 5896 1744 5513 1365 5138 994 4771 631 4412 276 4061 7848 3718 7509 3383 7178 3056 6855 2737 6540 2426 6233 2123 5934 1828 5643 1541 5360 1262 5085 991 4818 728 4559 473 4308 226 4065 7906 3830 7675 3603 7452 3384 7237 3173 7030 2970 6831 2775 6640 2588 6457 2409 6282 2238 6115 2075 5956 1920 5805 1773 5662 1634 5527 1503 5400 1380 5281 1265 5170 1158 5067 1059 4972 968 4885 885 4806 810 4735 743 4672 684 4617 633 4570 590 4531 555 4500 528 4477 509 4462 498 4455 495 4456 500 4465 513 4482 534 4507 563 4540 600 4581 645 4630 698 4687 759 4752 828 4825');
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
CREATE UNIQUE INDEX said_key ON ONLY golden_schema.said USING btree (tenant, root, branch, "position") WHERE (place >= 0);
CREATE INDEX said_words ON ONLY golden_schema.said USING gin (array_to_tsvector(string_to_array(((to_hex(place) || ':'::text) || replace(words, ' '::text, ((' '::text || to_hex(place)) || ':'::text))), ' '::text))) WITH (fastupdate='on', gin_pending_list_limit='512');
CREATE INDEX said_p00_array_to_tsvector_idx ON golden_schema.said_p00 USING gin (array_to_tsvector(string_to_array(((to_hex(place) || ':'::text) || replace(words, ' '::text, ((' '::text || to_hex(place)) || ':'::text))), ' '::text))) WITH (fastupdate='on', gin_pending_list_limit='512');
CREATE UNIQUE INDEX said_p00_tenant_root_branch_position_idx ON golden_schema.said_p00 USING btree (tenant, root, branch, "position") WHERE (place >= 0);
CREATE INDEX said_p01_array_to_tsvector_idx ON golden_schema.said_p01 USING gin (array_to_tsvector(string_to_array(((to_hex(place) || ':'::text) || replace(words, ' '::text, ((' '::text || to_hex(place)) || ':'::text))), ' '::text))) WITH (fastupdate='on', gin_pending_list_limit='512');
CREATE UNIQUE INDEX said_p01_tenant_root_branch_position_idx ON golden_schema.said_p01 USING btree (tenant, root, branch, "position") WHERE (place >= 0);
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
ALTER INDEX golden_schema.said_words ATTACH PARTITION golden_schema.said_p00_array_to_tsvector_idx;
ALTER INDEX golden_schema.said_key ATTACH PARTITION golden_schema.said_p00_tenant_root_branch_position_idx;
ALTER INDEX golden_schema.said_words ATTACH PARTITION golden_schema.said_p01_array_to_tsvector_idx;
ALTER INDEX golden_schema.said_key ATTACH PARTITION golden_schema.said_p01_tenant_root_branch_position_idx;
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
