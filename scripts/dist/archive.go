package main

import (
	"archive/tar"
	"archive/zip"
	"compress/flate"
	"compress/gzip"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// file is a member of an archive. Its name has slashes on every system.
type file struct {
	name string
	mode fs.FileMode
	data []byte
}

// sorted returns the files in the order of their names, each below dir.
func sorted(dir string, files []file) []file {
	all := slices.Clone(files)
	for i := range all {
		all[i].name = dir + "/" + all[i].name
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return all
}

// writeTarGz writes the files, below dir, as a compressed tar archive. The same
// files and time give the same bytes, whoever builds them: there is no owner in
// it, and neither a name nor a time in the header of the compression.
func writeTarGz(w io.Writer, dir string, files []file, at time.Time) error {
	packed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(packed)
	for _, f := range sorted(dir, files) {
		err := archive.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.data)),
			ModTime: at.UTC().Truncate(time.Second), Format: tar.FormatUSTAR,
		})
		if err != nil {
			return err
		}
		if _, err := archive.Write(f.data); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return packed.Close()
}

// writeZip writes the files, below dir, as a zip archive. The same files and time
// give the same bytes.
func writeZip(w io.Writer, dir string, files []file, at time.Time) error {
	archive := zip.NewWriter(w)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, f := range sorted(dir, files) {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at.UTC().Truncate(time.Second)}
		header.SetMode(f.mode)
		member, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := member.Write(f.data); err != nil {
			return err
		}
	}
	return archive.Close()
}
