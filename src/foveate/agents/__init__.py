"""Agents on conversations that never outgrow their window: a chat agent, a ReAct agent, and a loop agent."""
