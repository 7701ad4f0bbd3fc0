"""Routes and pages, one file each: what a request asks for, and the template that answers it."""
