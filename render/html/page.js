(function () {
  "use strict";
  var doc = document, root = doc.documentElement, body = doc.body;
  var $ = function (id) { return doc.getElementById(id); };
  var sections = Array.from(doc.querySelectorAll("main section"));
  var groups = Array.from(doc.querySelectorAll("main > div"));
  var linked = Array.from(doc.querySelectorAll("[data-s]")); // shown with a section
  var main = doc.querySelector("main");

  // Sections are a tree: each says which one it goes on, and which one goes on it,
  // unless that is its neighbour.
  function before(k) { var p = sections[k].dataset.p; return p === undefined ? k - 1 : p - 1; }
  function after(k) { var n = sections[k].dataset.n; return n === undefined ? k + 1 : n - 1; }

  // show makes one path visible: what leads to a section, and how it goes on.
  function show(k) {
    var on = new Set(), i;
    for (i = k; i >= 0 && !on.has(i); i = before(i)) on.add(i);
    for (i = after(k); i >= 0 && i < sections.length && !on.has(i); i = after(i)) on.add(i);
    sections.forEach(function (s, i) { if (s.hidden === on.has(i)) s.hidden = !on.has(i); });
    groups.forEach(function (g) { // as high as what is shown of it
      for (var height = 0, s = g.firstElementChild; s; s = s.nextElementSibling) if (!s.hidden) height += 71 * Math.pow(2, s.className.slice(1) / 2);
      g.hidden = !height;
      g.style.containIntrinsicSize = "auto " + Math.round(height) + "px";
    });
    linked.forEach(function (e) {
      var yes = on.has(e.dataset.s - 1);
      if (e.tagName !== "A") e.hidden = !yes;
      else if (yes) e.setAttribute("aria-current", "true");
      else e.removeAttribute("aria-current");
    });
  }
  function sectionOf(e) {
    var out = e.closest("[data-s]"), s = e.closest("main section");
    return out && s ? out.dataset.s - 1 : s ? s.id.slice(1) - 1 : -1;
  }
  // reveal makes an element visible, whatever hides it.
  function reveal(e) {
    var k = sectionOf(e), d;
    if (k < 0) return;
    if (sections[k].hidden) show(k);
    if (body.classList.contains("only-images") && !(e.closest("article") || e).querySelector(".media img")) gallery(false);
    for (d = e; d && d !== main; d = d.parentElement) {
      if (d.tagName === "DETAILS") d.open = true;
      if (d.matches(".tool")) filter("tools", true);
      if (d.matches(".thinking")) filter("thinking", true);
    }
  }
  function go() {
    var e = location.hash.length > 1 && $(location.hash.slice(1));
    if (!e || !main.contains(e)) return;
    reveal(e);
    here(e.closest("article") || e.querySelector("article"));
    e.scrollIntoView();
    body.classList.remove("drawer");
  }
  addEventListener("hashchange", go);
  doc.addEventListener("click", function (ev) { // a link to where we are changes no hash
    var a = ev.target.closest('a[href^="#"]');
    if (a && a.hash === location.hash) { ev.preventDefault(); go(); }
    else if (body.classList.contains("drawer") && !ev.target.closest(".side, #outline")) body.classList.remove("drawer");
  });

  // Filters, folding, the theme. What a reader chose is kept if the browser can.
  function keep(name, value) { try { localStorage.setItem("coppice." + name, value); } catch (e) { /* it need not be kept */ } }
  function kept(name) { try { return localStorage.getItem("coppice." + name); } catch (e) { return null; } }
  function filter(what, yes) {
    if (yes === undefined) yes = body.classList.contains("no-" + what);
    if (yes !== body.classList.contains("no-" + what)) return;
    var at = top() || current, y = at && at.getBoundingClientRect().top;
    body.classList.toggle("no-" + what, !yes);
    $(what).setAttribute("aria-pressed", yes);
    keep(what, yes);
    if (at && seen(at)) scrollBy(0, at.getBoundingClientRect().top - y); // what one reads stays where it is
  }
  ["tools", "thinking"].forEach(function (what) {
    $(what).addEventListener("click", function () { filter(what); });
    if (!main.querySelector(what === "tools" ? ".tool" : ".thinking")) $(what).hidden = true;
    else if (kept(what) === "false") filter(what, false);
  });
  // The images by themselves, as in a gallery.
  function gallery(yes) {
    if (yes === body.classList.contains("only-images")) return;
    body.classList.toggle("only-images", yes);
    $("images").setAttribute("aria-pressed", yes);
    if (!yes) { if (current) current.scrollIntoView(); return; }
    filter("tools", true);
    main.querySelectorAll("details:has(.media img)").forEach(function (d) { d.open = true; });
    scrollTo(0, 0);
  }
  function turnGallery() { if (!$("images").hidden) gallery(!body.classList.contains("only-images")); }
  $("images").hidden = !main.querySelector(".media img");
  $("images").addEventListener("click", turnGallery);
  function unfold() {
    var yes = $("unfold").getAttribute("aria-pressed") !== "true";
    $("unfold").setAttribute("aria-pressed", yes);
    main.querySelectorAll("details.tool, details.thinking, .compaction > details").forEach(function (d) { d.open = yes; });
  }
  $("unfold").addEventListener("click", unfold);
  function theme(to) {
    if (to) root.dataset.theme = to; else delete root.dataset.theme;
    keep("theme", to || "");
  }
  function turn() {
    var dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    theme(dark ? "light" : "dark");
  }
  if (/^(light|dark)$/.test(kept("theme"))) root.dataset.theme = kept("theme");
  $("theme").addEventListener("click", turn);
  function outline() {
    if (matchMedia("(max-width: 62rem)").matches) body.classList.toggle("drawer");
    else { body.classList.toggle("no-outline"); keep("outline", !body.classList.contains("no-outline")); }
    $("outline").setAttribute("aria-expanded", body.classList.contains("drawer"));
  }
  if (kept("outline") === "false" || !doc.querySelector(".marks li")) body.classList.add("no-outline");
  $("outline").addEventListener("click", outline);
  var keys = $("keys");
  $("help").addEventListener("click", function () { keys.showModal(); });

  // Moving from message to message.
  var current = null;
  function here(a) {
    if (current) current.classList.remove("here");
    current = a;
    if (a) a.classList.add("here");
  }
  function seen(a) {
    var c = a.classList, tools = !body.classList.contains("no-tools"), thinking = !body.classList.contains("no-thinking");
    if (body.classList.contains("only-images")) return !!a.querySelector(".media img");
    return !a.parentNode.hidden && (c.contains("x") || tools && c.contains("t") || thinking && c.contains("h") || !c.contains("t") && !c.contains("h"));
  }
  function step(a, way) { // the next or previous article that can be seen
    var next = way > 0 ? "nextElementSibling" : "previousElementSibling", k;
    do {
      if (a[next]) a = a[next];
      else {
        for (k = a.parentNode.id.slice(1) - 1 + way; sections[k] && (sections[k].hidden || !sections[k].firstElementChild); k += way);
        if (!sections[k]) return null;
        a = way > 0 ? sections[k].firstElementChild : sections[k].lastElementChild;
      }
    } while (!seen(a));
    return a;
  }
  function top() { // the article at the top of the window
    var x = main.getBoundingClientRect().left + 40, y, e, a;
    for (y = 90; y < innerHeight; y += 40) {
      e = doc.elementFromPoint(x, y);
      a = e && e.closest("article");
      if (a) return a;
    }
    return null;
  }
  function inSight(a) { var r = a.getBoundingClientRect(); return r.bottom > 60 && r.top < innerHeight; }
  function move(way, wanted) {
    var a = current && seen(current) && inSight(current) ? current : top();
    if (!a) return;
    var next = a === current || a.getBoundingClientRect().top < 60 || way < 0 ? step(a, way) : a;
    while (next && wanted && !wanted(next)) next = step(next, way);
    if (next) { here(next); next.scrollIntoView({ block: "start" }); }
  }
  function isPrompt(a) { return a.classList.contains("user"); }
  function end(way) {
    var all = sections.filter(function (s) { return !s.hidden && s.firstElementChild; });
    if (!all.length) return;
    here(way < 0 ? all[0].firstElementChild : all[all.length - 1].lastElementChild);
    scrollTo(0, way < 0 ? 0 : body.scrollHeight);
    if (way > 0) current.scrollIntoView({ block: "end" });
  }
  function branch(way) { // another branch at the nearest choice at or above
    var a = current || top();
    for (; a; a = step(a, -1)) {
      var links = Array.from(a.querySelectorAll(":scope > .branches a"));
      if (links.length) {
        var at = links.findIndex(function (l) { return l.hasAttribute("aria-current"); });
        var to = links[(at + way + links.length) % links.length];
        show(to.dataset.s - 1);
        here(a);
        a.querySelector(".branches").scrollIntoView({ block: "center" });
        return;
      }
    }
  }

  // The outline says where one is.
  var marks = Array.from(doc.querySelectorAll(".marks a")), waiting = false, marked = null;
  var order = marks.map(function (a) { return +a.hash.slice(2); });
  function follow() {
    waiting = false;
    var a = top(), n, lo = 0, hi = order.length, mid;
    if (!a) return;
    for (n = +a.id.slice(1); lo < hi;) { mid = lo + hi >> 1; if (order[mid] <= n) lo = mid + 1; else hi = mid; }
    while (lo > 0 && marks[lo - 1].parentNode.hidden) lo--;
    var next = marks[lo - 1] || null;
    if (next === marked) return;
    if (marked) marked.removeAttribute("aria-current");
    marked = next;
    if (!marked) return;
    marked.setAttribute("aria-current", "true");
    var side = doc.querySelector(".side"), r = marked.getBoundingClientRect(), s = side.getBoundingClientRect();
    if (r.top < s.top + 40 || r.bottom > s.bottom - 40) side.scrollTop += r.top - s.top - s.height / 2;
  }
  addEventListener("scroll", function () { if (!waiting) { waiting = true; setTimeout(follow, 120); } }, { passive: true });

  // Find. It looks through everything on the page: folded, filtered, on other branches.
  var field = $("find").querySelector("input"), count = $("find").querySelector("output");
  var texts = null, found = [], at = -1, timer = 0, mostFound = 10000;
  function walker(article) {
    return doc.createTreeWalker(article, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT, function (n) {
      if (n.nodeType === 3) return NodeFilter.FILTER_ACCEPT;
      return n.tagName === "HEADER" || n.tagName === "NAV" ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP;
    });
  }
  function textOf(article) {
    for (var w = walker(article), parts = []; w.nextNode();) parts.push(w.currentNode.data);
    return parts.join("");
  }
  function pattern() {
    var words = field.value.trim();
    if (!words) return null;
    return new RegExp(words.replace(/[.*+?^${}()|[\]\\\/]/g, "\\$&").replace(/\s+/g, "\\s+"), "giu");
  }
  function search() {
    var re = pattern();
    found = []; at = -1; paint();
    if (!re) { count.textContent = ""; return; }
    if (!texts) texts = Array.from(main.querySelectorAll("article")).map(function (a) { return { article: a, text: textOf(a) }; });
    for (var i = 0; i < texts.length && found.length < mostFound; i++) {
      re.lastIndex = 0;
      for (var m, t = texts[i]; (m = re.exec(t.text)) && found.length < mostFound;) found.push({ article: t.article, from: m.index, to: m.index + m[0].length });
    }
    if (!found.length) { count.textContent = "no match"; return; }
    var start = top(), n = start ? +start.id.slice(1) : 0;
    at = Math.max(0, found.findIndex(function (f) { return +f.article.id.slice(1) >= n; }));
    jump();
  }
  function rangesIn(article) { // of the matches in an article, by their place in found
    var ranges = {}, list = [], w = walker(article), pos = 0;
    found.forEach(function (f, i) { if (f.article === article) { ranges[i] = doc.createRange(); list.push(i); } });
    for (var a = 0, b = 0; w.nextNode() && b < list.length; pos += w.currentNode.data.length) {
      var stop = pos + w.currentNode.data.length;
      for (; a < list.length && found[list[a]].from < stop; a++) ranges[list[a]].setStart(w.currentNode, found[list[a]].from - pos);
      for (; b < list.length && found[list[b]].to <= stop; b++) ranges[list[b]].setEnd(w.currentNode, found[list[b]].to - pos);
    }
    return ranges;
  }
  function paint(ranges) {
    if (!window.CSS || !CSS.highlights) return;
    CSS.highlights.clear();
    if (!ranges) return;
    CSS.highlights.set("match", new Highlight(...Object.keys(ranges).filter(function (i) { return +i !== at; }).map(function (i) { return ranges[i]; })));
    CSS.highlights.set("here", new Highlight(ranges[at]));
  }
  function jump() {
    var f = found[at], ranges = rangesIn(f.article), range = ranges[at];
    count.textContent = (at + 1).toLocaleString() + " / " + found.length.toLocaleString() + (found.length === mostFound ? "+" : "");
    var e = range.startContainer.parentElement;
    reveal(e);
    here(f.article);
    paint(ranges);
    e.scrollIntoView({ block: "center" });
    var pre = e.closest("pre"), r = range.getBoundingClientRect();
    if (pre && pre.scrollHeight > pre.clientHeight) pre.scrollTop += r.top - pre.getBoundingClientRect().top - pre.clientHeight / 2;
    r = range.getBoundingClientRect();
    if (r.top < 110 || r.bottom > innerHeight - 40) scrollBy(0, r.top - innerHeight / 2);
    if (!window.CSS || !CSS.highlights) { var s = getSelection(); s.removeAllRanges(); s.addRange(range); }
  }
  function nextMatch(way) {
    if (timer) { clearTimeout(timer); timer = 0; search(); return; }
    if (found.length) { at = (at + way + found.length) % found.length; jump(); }
  }
  function seek() { $("find").hidden = false; field.focus(); field.select(); }
  function done() { $("find").hidden = true; found = []; texts = null; paint(); count.textContent = ""; }
  $("seek").addEventListener("click", function () { if ($("find").hidden) seek(); else done(); });
  $("done").addEventListener("click", done);
  $("previous").addEventListener("click", function () { nextMatch(-1); });
  $("following").addEventListener("click", function () { nextMatch(1); });
  $("find").addEventListener("submit", function (ev) { ev.preventDefault(); });
  field.addEventListener("input", function () { clearTimeout(timer); timer = setTimeout(function () { timer = 0; search(); }, 180); });
  field.addEventListener("keydown", function (ev) {
    if (ev.key === "Enter") { ev.preventDefault(); nextMatch(ev.shiftKey ? -1 : 1); }
    if (ev.key === "Escape") { done(); ev.stopPropagation(); }
  });

  // Code can be copied.
  var copy = doc.createElement("button"), copied = null;
  copy.id = "copy"; copy.type = "button"; copy.hidden = true; copy.textContent = "Copy";
  body.appendChild(copy);
  main.addEventListener("pointerover", function (ev) {
    var pre = ev.target.closest("pre");
    if (!pre || pre === copied && !copy.hidden) return;
    var r = pre.getBoundingClientRect();
    copied = pre; copy.hidden = false; copy.textContent = "Copy";
    copy.style.top = r.top + scrollY + 5 + "px";
    copy.style.left = r.right + scrollX - copy.offsetWidth - 8 + "px";
  });
  main.addEventListener("pointerout", function (ev) {
    if (copied && ev.relatedTarget !== copy && !(ev.relatedTarget && ev.relatedTarget.closest && ev.relatedTarget.closest("pre"))) copy.hidden = true;
  });
  copy.addEventListener("click", function () {
    var said = function () { copy.textContent = "Copied"; };
    if (navigator.clipboard) { navigator.clipboard.writeText(copied.textContent).then(said, function () {}); return; }
    getSelection().selectAllChildren(copied);
    if (doc.execCommand("copy")) said();
  });

  var pressed = {
    j: function () { move(1); }, k: function () { move(-1); },
    n: function () { move(1, isPrompt); }, p: function () { move(-1, isPrompt); },
    g: function () { end(-1); }, G: function () { end(1); },
    "[": function () { branch(-1); }, "]": function () { branch(1); },
    "/": seek, o: outline, e: unfold, d: turn, i: turnGallery,
    t: function () { if (!$("tools").hidden) filter("tools"); }, h: function () { if (!$("thinking").hidden) filter("thinking"); },
    Enter: function () {
      var folds = current && seen(current) && inSight(current) ? Array.from(current.querySelectorAll(":scope > details")) : [];
      if (!folds.length) return false;
      var yes = folds.some(function (d) { return !d.open; });
      folds.forEach(function (d) { d.open = yes; });
    },
    "?": function () { keys.showModal(); },
    Escape: function () { if (!$("find").hidden) done(); else body.classList.remove("drawer"); }
  };
  addEventListener("keydown", function (ev) {
    if (ev.ctrlKey || ev.metaKey || ev.altKey || keys.open || /^(INPUT|TEXTAREA|SELECT)$/.test(ev.target.tagName)) return;
    if (ev.key === "Enter" && /^(BUTTON|SUMMARY|A)$/.test(ev.target.tagName)) return;
    var act = Object.prototype.hasOwnProperty.call(pressed, ev.key) && pressed[ev.key];
    if (act && act() !== false) ev.preventDefault();
  });

  go();
  follow();
  addEventListener("load", follow);
})();
