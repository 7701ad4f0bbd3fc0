// Follows background jobs, and loads the page again when one ends.
import { count } from "./page.js";

const jobs = [...document.querySelectorAll("[data-job]")].filter((job) => /waiting|running/.test(job.dataset.status));

async function look(job) {
  const answer = await fetch(job.dataset.job, { credentials: "same-origin" });
  if (!answer.ok) return true;
  const now = await answer.json();
  const bar = job.querySelector("progress");
  if (now.total) {
    bar.max = now.total;
    bar.value = now.done;
    job.querySelector("[data-job-text]").textContent = `${count(now.done)} of ${count(now.total)} messages`;
  }
  return now.status !== "waiting" && now.status !== "running";
}

async function follow() {
  if (!document.hidden) {
    const ended = await Promise.all(jobs.map((job) => look(job).catch(() => false)));
    if (ended.some(Boolean)) return location.reload();
  }
  setTimeout(follow, 500);
}

if (jobs.length) setTimeout(follow, 300);
