package vfs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

const seeds = 300

// crashed returns the disk after a crash.
func (d disk) crashed(rng *rand.Rand, loss ...vfstest.Loss) disk {
	d.FS = d.FS.(*vfstest.Memory).CrashClone(rng, loss...)
	return d
}

func seeded(seed int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 0)) }

// outcomes returns what look saw after many crashes, sorted.
func (d disk) outcomes(look func(after disk) string) []string {
	seen := map[string]bool{}
	for seed := range seeds {
		seen[look(d.crashed(seeded(seed)))] = true
	}
	list := make([]string, 0, len(seen))
	for s := range seen {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}

func tree(d disk) string { return strings.Join(d.tree(""), " ") }

// content describes a file in short: runs of a byte as the byte and its count.
func content(name string) func(disk) string {
	return func(d disk) string {
		if !d.exists(name) {
			return "absent"
		}
		var out strings.Builder
		text := d.read(name)
		for text != "" {
			rest := strings.TrimLeft(text, text[:1])
			fmt.Fprintf(&out, "%s%d", strings.ReplaceAll(text[:1], "\x00", "0x"), len(text)-len(rest))
			text = rest
		}
		return out.String()
	}
}

// TestCrashOfFile has for each way of changing a file all that a crash can
// leave of it: at least these, and nothing else.
func TestCrashOfFile(t *testing.T) {
	t.Parallel()
	a, b := strings.Repeat("a", 512), strings.Repeat("b", 512)
	tests := []struct {
		name   string
		change func(d disk)
		want   []string
	}{
		{"synced", func(d disk) { d.must(d.appendTo("file", b).Sync()) }, []string{"a512b512"}},
		{"append", func(d disk) { d.appendTo("file", b) }, []string{"a512", "a512b512", "a5120x512"}},
		{"append inside a sector", func(d disk) {
			d.save("file", "aaa")
			d.appendTo("file", "bb")
		}, []string{"a3", "a3b2", "a30x2"}},
		{"append over two sectors", func(d disk) { d.appendTo("file", b+"c") }, []string{
			"a512", "a512b512", "a512b512c1", "a512b5120x1", "a5120x512", "a5120x512c1", "a5120x513",
		}},
		{"two appends", func(d disk) { d.append(d.appendTo("file", b), "c") }, []string{
			"a512", "a512b512", "a512b512c1", "a512b5120x1", "a5120x512", "a5120x512c1", "a5120x513",
		}},
		{"overwrite", func(d disk) { d.append(d.open("file", rw), b) }, []string{"a512", "b512"}},
		{"overwrite a part", func(d disk) { d.append(d.open("file", rw), "b") }, []string{"a512", "b1a511"}},
		{"truncate", func(d disk) { d.must(d.open("file", rw).Truncate(3)) }, []string{"a3", "a512"}},
		{"extend", func(d disk) { d.must(d.open("file", rw).Truncate(515)) }, []string{"a512", "a5120x3"}},
		{"replace", func(d disk) { d.write("file", b) }, []string{"", "0x512", "a512", "b512"}},
		{"cut and append", func(d disk) {
			d.must(d.open("file", rw).Truncate(3))
			d.appendTo("file", "b")
		}, []string{"a3", "a3b1", "a30x1", "a512"}},
		{"append and cut", func(d disk) {
			f := d.appendTo("file", "b")
			d.must(f.Truncate(512))
		}, []string{"a512", "a512b1", "a5120x1"}},
		{"synced after the cut", func(d disk) {
			f := d.appendTo("file", "b")
			d.must(f.Truncate(512))
			d.must(f.Sync())
		}, []string{"a512"}},
		{"new file", func(d disk) { d.write("new", "").Close(); d.rename("new", "file") }, []string{"", "a512"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newMemoryDisk(t)
			d.save("file", a)
			test.change(d)
			slices.Sort(test.want)
			if got := d.outcomes(content("file")); !slices.Equal(got, test.want) {
				t.Errorf("outcomes\n%q, want\n%q", got, test.want)
			}
		})
	}
}

func (d disk) appendTo(name, text string) vfs.File {
	d.t.Helper()
	f := d.open(name, appending)
	d.append(f, text)
	return f
}

// TestCrashOfDirectory is the same for names.
func TestCrashOfDirectory(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(d disk)
		want   []string
	}{
		{"created", func(d disk) { d.write("a/new", "") }, []string{"a/ a/x b/", "a/ a/new a/x b/"}},
		{"created and synced", func(d disk) { d.write("a/new", ""); d.syncDir("a") }, []string{"a/ a/new a/x b/"}},
		{"created, wrong directory synced", func(d disk) {
			d.write("a/new", "")
			d.syncDir("b")
			d.syncDir("")
		}, []string{"a/ a/x b/", "a/ a/new a/x b/"}},
		{"in order", func(d disk) {
			d.write("a/3", "")
			d.write("a/1", "")
			d.write("a/2", "")
		}, []string{"a/ a/x b/", "a/ a/3 a/x b/", "a/ a/1 a/3 a/x b/", "a/ a/1 a/2 a/3 a/x b/"}},
		{"directories on their own", func(d disk) { d.write("a/1", ""); d.write("b/2", "") }, []string{
			"a/ a/x b/", "a/ a/1 a/x b/", "a/ a/x b/ b/2", "a/ a/1 a/x b/ b/2",
		}},
		{"removed", func(d disk) { d.remove("a/x") }, []string{"a/ a/x b/", "a/ b/"}},
		{"removed and synced", func(d disk) { d.remove("a/x"); d.syncDir("a") }, []string{"a/ b/"}},
		{"renamed", func(d disk) { d.rename("a/x", "a/y") }, []string{"a/ a/x b/", "a/ a/y b/"}},
		{"renamed and synced", func(d disk) { d.rename("a/x", "a/y"); d.syncDir("a") }, []string{"a/ a/y b/"}},
		{"moved", func(d disk) { d.rename("a/x", "b/y") }, []string{"a/ a/x b/", "a/ b/ b/y"}},
		{"moved, old directory synced", func(d disk) { d.rename("a/x", "b/y"); d.syncDir("a") }, []string{"a/ b/ b/y"}},
		{"moved, new directory synced", func(d disk) { d.rename("a/x", "b/y"); d.syncDir("b") }, []string{"a/ b/ b/y"}},
		{"moved away, old directory removed", func(d disk) {
			d.rename("a/x", "b/x")
			d.remove("a")
		}, []string{"a/ a/x b/", "a/ b/ b/x", "b/ b/x"}},
		{"moved away, removal synced", func(d disk) {
			d.rename("a/x", "b/x")
			d.remove("a")
			d.syncDir("")
		}, []string{"b/ b/x"}},
		{"directory moved", func(d disk) {
			d.write("b/1", "")
			d.rename("a", "b/a")
			d.write("b/2", "")
		}, []string{"a/ a/x b/", "a/ a/x b/ b/1", "b/ b/1 b/a/ b/a/x", "b/ b/1 b/2 b/a/ b/a/x"}},
		{"after a directory was renamed", func(d disk) {
			d.rename("a", "c")
			d.write("b/1", "")
		}, []string{"a/ a/x b/", "b/ c/ c/x", "b/ b/1 c/ c/x"}},
		{"after a directory was renamed, synced", func(d disk) {
			d.rename("a", "c")
			d.write("b/1", "")
			d.syncDir("b")
		}, []string{"a/ a/x b/ b/1", "b/ b/1 c/ c/x"}},
		{"name used again", func(d disk) { d.remove("a/x"); d.mkdir("a/x") }, []string{"a/ a/x/ b/"}},
		{"directory made", func(d disk) { d.must(d.MkdirAll(d.path("b/c/d"), 0o700)) }, []string{"a/ a/x b/", "a/ a/x b/ b/c/", "a/ a/x b/ b/c/ b/c/d/"}},
		{"directory made and synced", func(d disk) { d.mkdir("b/c/d") }, []string{"a/ a/x b/ b/c/ b/c/d/"}},
		{"directory made durable by another", func(d disk) {
			d.must(d.MkdirAll(d.path("b/c/d"), 0o700))
			d.mkdir("b/c/d")
		}, []string{"a/ a/x b/ b/c/ b/c/d/"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newMemoryDisk(t)
			d.mkdir("a")
			d.mkdir("b")
			d.save("a/x", "")
			test.change(d)
			slices.Sort(test.want)
			if got := d.outcomes(tree); !slices.Equal(got, test.want) {
				t.Errorf("outcomes\n%q, want\n%q", got, test.want)
			}
		})
	}
}

// TestCrashOfReplacement is the usual way to replace a file, with and without
// the sync that makes it safe.
func TestCrashOfReplacement(t *testing.T) {
	t.Parallel()
	look := func(d disk) string { return content("file")(d) + " " + content("tmp")(d) }
	d := newMemoryDisk(t)
	d.save("file", "old")
	f := d.write("tmp", "n")
	d.must(f.Sync())
	d.rename("tmp", "file")
	want := []string{"n1 absent", "o1l1d1 absent", "o1l1d1 n1"}
	if got := d.outcomes(look); !slices.Equal(got, want) {
		t.Errorf("synced: outcomes %q, want %q", got, want)
	}
	d.syncDir("")
	if got := d.outcomes(look); !slices.Equal(got, []string{"n1 absent"}) {
		t.Errorf("directory synced: outcomes %q", got)
	}
	d.write("tmp", "m").Close()
	d.rename("tmp", "file")
	d.syncDir("")
	if got := d.outcomes(look); !slices.Equal(got, []string{" absent", "0x1 absent", "m1 absent"}) {
		t.Errorf("file not synced: outcomes %q", got)
	}
}

func TestCrashLoss(t *testing.T) {
	t.Parallel()
	d := newMemoryDisk(t)
	d.save("file", "synced ")
	d.save("gone", "")
	f := d.appendTo("file", strings.Repeat("more ", 1000))
	d.must(f.Truncate(11))
	d.append(f, "!")
	d.write("new", "new")
	d.remove("gone")
	d.mkdir("dir")
	d.write("dir/new", "")
	d.write("newer", "")
	all, none := d.crashed(nil, vfstest.LoseNothing), d.crashed(nil, vfstest.LoseAll)
	if got := tree(all); got != "dir/ dir/new file new newer" || all.read("file") != "synced more!" {
		t.Errorf("nothing lost: tree %s, content %q", got, all.read("file"))
	}
	// Making dir durable has done so with what happened in its parent before.
	if got := tree(none); got != "dir/ file new" || none.read("file") != "synced " || none.read("new") != "" {
		t.Errorf("all lost: tree %s, content %q", got, none.read("file"))
	}
}

func TestCrashIsRepeatable(t *testing.T) {
	t.Parallel()
	d := newMemoryDisk(t)
	for i := range 10 {
		d.mkdir(fmt.Sprint("d", i))
		d.write(fmt.Sprint("d", i, "/x"), strings.Repeat("x", 3000))
		d.rename(fmt.Sprint("d", i, "/x"), fmt.Sprint("d", i/2, "/y", i))
	}
	look := func(d disk) string {
		out := tree(d)
		for _, name := range d.tree("") {
			if !strings.HasSuffix(name, "/") {
				out += content(name)(d)
			}
		}
		return out
	}
	for seed := range 20 {
		if one, two := look(d.crashed(seeded(seed))), look(d.crashed(seeded(seed))); one != two {
			t.Fatalf("seed %d gave\n%s and\n%s", seed, one, two)
		}
	}
}

// TestCloneIsIndependent changes the original and its clones in every way, for
// the bytes of synced files are shared between them as long as possible.
func TestCloneIsIndependent(t *testing.T) {
	t.Parallel()
	changes := map[string]func(d disk){
		"append":    func(d disk) { d.appendTo("file", "more") },
		"overwrite": func(d disk) { d.append(d.open("file", rw), "XX") },
		"cut, sync, append": func(d disk) {
			f := d.open("file", appending)
			d.must(f.Truncate(2))
			d.must(f.Sync())
			d.append(f, "other")
		},
		"cut, extend": func(d disk) {
			f := d.open("file", rw)
			d.must(f.Truncate(2))
			d.must(f.Truncate(100))
		},
		"remove": func(d disk) { d.remove("file") },
		"rename": func(d disk) { d.rename("file", "dir/moved") },
		"create": func(d disk) { d.write("dir/new", "") },
	}
	for name, change := range changes {
		for _, loss := range []vfstest.Loss{vfstest.LoseSome, vfstest.LoseNothing, vfstest.LoseAll} {
			d := newMemoryDisk(t)
			d.mkdir("dir")
			d.save("file", "0123456789")
			one, two := d.crashed(seeded(1), loss), d.crashed(seeded(2), loss)
			three := one.crashed(seeded(3), loss)
			for i, changed := range []disk{d, two, three} {
				change(changed)
				if got := one.read("file"); got != "0123456789" || tree(one) != "dir/ file" {
					t.Errorf("%s of disk %d, loss %d: the clone has %s, %q", name, i, loss, tree(one), got)
				}
			}
			change(one)
			if tree(one) != tree(d) {
				t.Errorf("%s: trees %s and %s", name, tree(one), tree(d))
			}
		}
	}
}

func TestCloneHasNoLocks(t *testing.T) {
	t.Parallel()
	d := newMemoryDisk(t)
	f := d.write("file", "")
	d.must(f.Sync())
	d.syncDir("")
	g := d.write("other", "")
	d.must(g.Sync())
	d.syncDir("")
	f.TryLock()
	g.TryRLock()
	after := d.crashed(seeded(1))
	if ok, err := after.open("file", rw).TryLock(); !ok || err != nil {
		t.Errorf("TryLock = %v, %v", ok, err)
	}
	if ok, err := after.open("other", rw).TryLock(); !ok || err != nil {
		t.Errorf("TryLock where another had a shared one = %v, %v", ok, err)
	}
	if !after.has("file", after.open("file", read)) {
		t.Error("the file of the clone does not have its name")
	}
}

func TestCrashCloneWhileInUse(t *testing.T) {
	t.Parallel()
	d := newMemoryDisk(t)
	f := d.write("file", "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			f.Write([]byte("0123456789"))
			if i%10 == 0 {
				f.Truncate(5)
			}
			f.Sync()
		}
	}()
	rng := seeded(1)
	for range 200 {
		after := d.crashed(rng)
		if after.exists("file") {
			after.appendTo("file", "more")
		}
	}
	<-done
}

// TestCrashLosesNoFile moves files and directories about at random. However a
// crash cuts that off, each file is in exactly one place.
func TestCrashLosesNoFile(t *testing.T) {
	t.Parallel()
	const files = 5
	rng := soak.Rand(t)
	for range 60 {
		d := newMemoryDisk(t)
		for i := range files {
			d.mkdir(fmt.Sprint("d", i))
			d.save(fmt.Sprintf("d%d/f%d", i, i), fmt.Sprint(i))
		}
		for range 40 {
			moveSomething(d, rng)
			after := d.crashed(rng)
			if got := contents(after); got != "01234" {
				t.Fatalf("files %s after the crash in\n%s, before it\n%s", got, tree(after), tree(d))
			}
		}
	}
}

// moveSomething does a random change that keeps all files. Some are refused.
func moveSomething(d disk, rng *rand.Rand) {
	names := append(d.tree(""), "/")
	pick := func() string { return strings.TrimSuffix(names[rng.IntN(len(names))], "/") }
	switch from, to := pick(), pick(); rng.IntN(6) {
	case 0:
		d.SyncDir(d.path(to))
	case 1:
		if info, err := d.Lstat(d.path(from)); err == nil && info.IsDir() {
			d.Remove(d.path(from))
		}
	case 2:
		vfs.Mkdir(d.FS, d.path(to+fmt.Sprint("/d", rng.IntN(5))), 0o700)
	default:
		if from != "" {
			to += "/" + from[strings.LastIndex(from, "/")+1:]
			if _, err := d.Lstat(d.path(to)); err != nil {
				d.Rename(d.path(from), d.path(to))
			}
		}
	}
}

// contents returns the contents of all files together, sorted.
func contents(d disk) string {
	var all []string
	for _, name := range d.tree("") {
		if !strings.HasSuffix(name, "/") {
			all = append(all, d.read(name))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

func BenchmarkCrashClone(b *testing.B) {
	d := newMemoryDisk(b)
	for i := range 10 {
		d.mkdir(fmt.Sprint("d", i))
		d.save(fmt.Sprintf("d%d/file", i), strings.Repeat("x", 10_000))
		if i%3 == 0 {
			d.appendTo(fmt.Sprintf("d%d/file", i), strings.Repeat("y", 1000))
			d.write(fmt.Sprintf("d%d/new", i), "new")
		}
	}
	rng := seeded(1)
	b.ReportAllocs()
	for b.Loop() {
		d.crashed(rng)
	}
}
