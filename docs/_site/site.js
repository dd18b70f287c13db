// The theme leaves out two things that keyboards and screen readers need.
document.querySelectorAll(".highlight pre, .md-typeset__scrollwrap").forEach((box) => { box.tabIndex = 0 })
document.querySelector(".md-search")?.setAttribute("aria-label", "Search")
