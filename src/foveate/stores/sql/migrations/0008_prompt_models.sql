-- The models that write with a prompt, in the order in which they are asked, separated by commas. '' is for those of the
-- summarizer.
ALTER TABLE prompt ADD COLUMN models TEXT NOT NULL DEFAULT '';
