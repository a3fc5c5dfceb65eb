package window_test

import (
	"encoding/base64"
	"math"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/window"
	"github.com/coppice-dev/coppice/window/tiktoken"
)

// samples are texts of each script.
func samples() map[string]string {
	data := make([]byte, 900)
	for i := range data {
		data[i] = byte(i*i*31 + i*7 + i>>3)
	}
	return map[string]string{
		"English": strings.Repeat("The old gardener walked slowly along the gravel path, looking at what the winter had left of his roses. "+
			"He did not expect much; still, there were a few green shoots near the wall, and that was enough to make him smile. ", 4),
		"code": strings.Repeat("func (g *Garden) Prune(ctx context.Context, limit int) error {\n\tfor i, rose := range g.roses {\n\t\tif rose.Height > limit {\n"+
			"\t\t\tif err := g.cut(ctx, i, rose.Height-limit); err != nil {\n\t\t\t\treturn fmt.Errorf(\"prune rose %d: %w\", i, err)\n\t\t\t}\n\t\t}\n\t}\n\treturn nil\n}\n\n", 3),
		"Chinese":  strings.Repeat("老园丁沿着砾石小路慢慢走着，看着冬天给他的玫瑰留下了什么。他没有抱太大的期望，但墙边还有几株绿色的嫩芽，这足以让他微笑。", 6),
		"Japanese": strings.Repeat("庭師は砂利道をゆっくりと歩き、冬がバラに何を残したかを見ていた。あまり期待はしていなかったが、壁のそばに緑の芽がいくつかあった。", 6),
		"JSON":     strings.Repeat(`{"id":"rose-17","height":142,"buds":[3,5,8],"planted":"2024-03-09","notes":{"soil":"clay","shade":true,"by":"Anna"}},`+"\n", 10),
		"base64":   base64.StdEncoding.EncodeToString(data),
	}
}

// R94, R96: where there is no tokenizer, each script is estimated by its own
// prices.
func TestEstimateByScript(t *testing.T) {
	t.Parallel()
	estimate, exact := window.Estimate("openai", "gpt-5"), tiktoken.O200k()
	for name, text := range samples() {
		t.Run(name, func(t *testing.T) {
			guess, want := estimate.CountText(text), exact.CountText(text)
			off := 100 * (float64(guess) - float64(want)) / float64(want)
			t.Logf("estimated %d, exact %d: %+.1f %%; bytes/4 %+.1f %%", guess, want, off, 100*(float64(len(text))/4-float64(want))/float64(want))
			if math.Abs(off) > 20 {
				t.Errorf("the estimate is off by %.1f %%", off)
			}
		})
	}
}

// The estimate's mean error per conversation is at most 10 %.
func TestCorpusEstimate(t *testing.T) {
	t.Parallel()
	estimate, exact := window.Estimate("openai", "gpt-5"), tiktoken.O200k()
	for name, conversations := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			var sum, bias, rough float64
			for _, entries := range conversations {
				guess, want, size := 0, 0, 0
				for i := range entries {
					content := entries[i].Message.Content
					guess += contentCost(estimate, "", content...).Tokens
					counted := contentCost(exact, "", content...)
					want += counted.Tokens
					size += counted.Bytes
				}
				off := float64(guess-want) / float64(want)
				sum += math.Abs(off)
				bias += off
				rough += math.Abs(float64(size)/4-float64(want)) / float64(want)
			}
			n := float64(len(conversations)) / 100
			t.Logf("%d conversations: mean error %.1f %%, bias %+.1f %%; bytes/4 %.1f %%", len(conversations), sum/n, bias/n, rough/n)
			if sum/n > 10 {
				t.Errorf("the mean error is %.1f %%", sum/n)
			}
		})
	}
}

// BenchmarkEstimate measures how fast texts are estimated.
func BenchmarkEstimate(b *testing.B) {
	c := window.Estimate("openai", "")
	for name, text := range samples() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				c.CountText(text)
			}
		})
	}
}
