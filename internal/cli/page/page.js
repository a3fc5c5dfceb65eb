(function () {
  "use strict";
  var byId = function (id) { return id ? document.getElementById(id) : null; };
  var all = document.querySelectorAll("main > article");
  // show makes one path visible: what leads to an entry, and how it goes on.
  function show(entry) {
    var on = {}, e;
    for (e = entry; e && !on[e.id]; e = byId(e.dataset.parent)) on[e.id] = true;
    for (e = byId(entry.dataset.next); e && !on[e.id]; e = byId(e.dataset.next)) on[e.id] = true;
    all.forEach(function (a) { a.hidden = !on[a.id]; });
    document.querySelectorAll(".branches a").forEach(function (a) {
      if (on[a.hash.slice(1)]) a.setAttribute("aria-current", "true");
      else a.removeAttribute("aria-current");
    });
  }
  function go() {
    var entry = byId(location.hash.slice(1));
    if (!entry || entry.tagName !== "ARTICLE") return;
    if (entry.hidden) show(entry);
    entry.scrollIntoView();
  }
  addEventListener("hashchange", go);
  go();
  var button = byId("fold"), tools = document.querySelectorAll("main details");
  function open(yes) { tools.forEach(function (d) { d.open = yes; }); }
  if (tools.length) {
    button.hidden = false;
    button.addEventListener("click", function () {
      var yes = button.textContent.indexOf("Open") === 0;
      open(yes);
      button.textContent = (yes ? "Close" : "Open") + " all tools";
    });
    addEventListener("beforeprint", function () { open(true); });
  }
})();
