//! The trials of the sample, file by file.

use std::io::{self, Cursor, Write};

use image::ImageResult;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::harbor::{self, Outcome, Run};
use super::{Content, Sample, images, texts};

/// The name of the long log in its trial.
pub const LOG_NAME: &str = "agent/train.log";

/// Makes the files of a trial.
type Make = fn() -> io::Result<Vec<Sample>>;

/// The trials and how their files are made.
pub(super) const TRIALS: [(&str, Make); 7] = [
    (MERGE.trial, merge),
    (PLOT.trial, plot),
    (TOKENIZER.trial, tokenizer),
    (TRANSLATE.trial, translate),
    (RENAME.trial, rename),
    (DEPLOY.trial, deploy),
    (CRACK.trial, crack),
];

const MERGE: Run = Run {
    trial: "fix-git-merge__aB3xK9q",
    id: "5d0f4a8e-6b0e-4c55-9a43-1f0f6f2d7c01",
    agent: "terminus-2",
    model: "large-1",
    began: 2,
    took: 4,
    tokens: [48_211, 31_040, 2_907],
    cost_usd: 0.214,
    outcome: Outcome::Reward(1.0),
};
const PLOT: Run = Run {
    trial: "plot-training-loss__Qm7RtZ2",
    id: "0a6c2b1d-92d7-4f7e-8b35-6c1e2a9d4e02",
    agent: "terminus-2",
    model: "large-1",
    began: 3,
    took: 7,
    tokens: [91_530, 70_112, 6_384],
    cost_usd: 0.402,
    outcome: Outcome::Reward(0.6),
};
const TOKENIZER: Run = Run {
    trial: "train-tokenizer__w9LkP4d",
    id: "c3e9d7f2-18a4-4d06-b7e1-90b5d3a86f03",
    agent: "terminus-2",
    model: "small-1",
    began: 11,
    took: 9,
    tokens: [22_764, 11_008, 1_951],
    cost_usd: 0.038,
    outcome: Outcome::Reward(1.0),
};
const TRANSLATE: Run = Run {
    trial: "translate-readme__Hn5cV8s",
    id: "7b18e5a0-3f6d-4a92-8c0b-25d4f1e79a04",
    agent: "codex",
    model: "large-1",
    began: 14,
    took: 3,
    tokens: [17_390, 0, 24_118],
    cost_usd: 0.311,
    outcome: Outcome::Reward(0.85),
};
const RENAME: Run = Run {
    trial: "rename-files__T2yBq6M",
    id: "e2f7a4c9-5d31-4b80-a6f8-7e93c0b15d05",
    agent: "codex",
    model: "small-1",
    began: 20,
    took: 2,
    tokens: [9_118, 4_096, 702],
    cost_usd: 0.011,
    outcome: Outcome::Reward(1.0),
};
const DEPLOY: Run = Run {
    trial: "build-and-deploy__J4fXe1u",
    id: "94a1c6d8-e07b-4923-9f5c-b38e6d20a706",
    agent: "terminus-2",
    model: "large-1",
    began: 26,
    took: 8,
    tokens: [133_902, 101_376, 8_241],
    cost_usd: 0.577,
    outcome: Outcome::Reward(0.5),
};
const CRACK: Run = Run {
    trial: "crack-archive__Zd8oN3r",
    id: "1f8b3e6a-c725-4e19-80d4-4a6f92c7b807",
    agent: "terminus-2",
    model: "small-1",
    began: 31,
    took: 6,
    tokens: [64_007, 52_224, 3_330],
    cost_usd: 0.072,
    outcome: Outcome::Exception("AgentTimeoutError", "Agent execution timed out after 360.0 seconds", texts::TRACEBACK),
};

fn merge() -> io::Result<Vec<Sample>> {
    let mut files = MERGE.files(&Value::Null);
    let turns = [
        ("user", "The merge of feature/parser into main has conflicts. Resolve them; all tests must pass."),
        ("agent", "I look at the state of the repository first: git status && git diff --name-only --diff-filter=U"),
        ("environment", "both modified: src/parser.py"),
        ("agent", "Both sides changed tokenize(). I keep the new signature and the old error message."),
        ("agent", "pytest -q: 22 passed. The merge is committed."),
    ];
    files.extend([
        Sample::new("agent/trajectory.json", harbor::trajectory(MERGE.agent, &turns)),
        Sample::new("agent/recording.cast", RECORDING),
        Sample::new("agent/episode-0/prompt.txt", format!("{}\n", turns[0].1)),
        Sample::new("agent/episode-0/response.txt", format!("{}\n", turns[1].1)),
        Sample::new("agent/episode-1/prompt.txt", format!("{}\n", turns[2].1)),
        Sample::new("agent/episode-1/response.txt", format!("{}\n", turns[3].1)),
        Sample::new("verifier/reward.txt", "1\n"),
        Sample::new("verifier/test-stdout.txt", TESTS_PASSED),
        Sample::new(
            "verifier/ctrf.json",
            harbor::ctrf(&[("test_merge_commit_exists", true), ("test_no_markers", true), ("test_suite_passes", true)]),
        ),
        Sample::new(
            "artifacts/manifest.json",
            harbor::manifest(&[
                ("/app/src/parser.py", "app/src/parser.py", "ok"),
                ("/logs/artifacts/", "logs/artifacts", "ok"),
                ("/app/.coverage", "app/.coverage", "skipped"),
            ]),
        ),
        Sample::new("artifacts/app/src/parser.py", PARSER),
        picture("artifacts/logs/artifacts/screenshot.png", images::terminal_png())?,
    ]);
    Ok(files)
}

fn plot() -> io::Result<Vec<Sample>> {
    let mut files = PLOT.files(&Value::Null);
    let whole = images::terminal_png().map_err(io::Error::other)?;
    let truncated = whole[..whole.len() * 2 / 3].to_vec();
    files.extend([
        Sample::new("verifier/reward.txt", "0.6\n"),
        Sample::new(
            "verifier/test-stdout.txt",
            "test_loss_png PASSED\ntest_loss_jpg PASSED\ntest_animation PASSED\n\
             test_screenshot FAILED: the file ends early\ntest_report FAILED: not a PNG file\n",
        ),
        Sample::new(
            "artifacts/manifest.json",
            harbor::manifest(&[("/app/plots/", "app/plots", "ok"), ("/app/bundle.zip", "app/bundle.zip", "ok")]),
        ),
        picture("artifacts/app/plots/loss.png", images::plot_png())?,
        picture("artifacts/app/plots/loss.jpg", images::plot_jpeg())?,
        picture("artifacts/app/plots/loss.gif", images::plot_gif())?,
        picture("artifacts/app/plots/attention.webp", images::heat_webp())?,
        picture("artifacts/app/plots/timeline.png", images::wide_png())?,
        Sample::new("artifacts/app/plots/truncated.png", truncated),
        Sample::new("artifacts/app/plots/report.png", texts::HTML),
        Sample::new(
            "artifacts/app/plots/loss.csv",
            "step,train,validation\n0,3.98,3.95\n100,1.31,1.58\n200,0.82,1.17\n",
        ),
        Sample::new("artifacts/app/bundle.zip", bundle().map_err(io::Error::other)?),
    ]);
    Ok(files)
}

fn tokenizer() -> io::Result<Vec<Sample>> {
    let mut files = TOKENIZER.files(&Value::Null);
    files.extend([
        Sample { name: LOG_NAME.into(), content: Content::Log },
        Sample::new("verifier/reward.json", "{\"reward\": 1.0, \"bytes_per_token\": 4.21}\n"),
        Sample::new("verifier/test-stdout.txt", "vocabulary: 32000 entries\nround trip of 10000 lines: equal\n"),
        Sample::new("artifacts/stderr.txt", ""),
        Sample::new(
            "artifacts/tokenizer.json",
            "{\"type\": \"BPE\", \"vocab_size\": 32000, \"merges\": [\"t h\", \"th e\"]}\n",
        ),
    ]);
    Ok(files)
}

fn translate() -> io::Result<Vec<Sample>> {
    let mut files = TRANSLATE.files(&Value::Null);
    files.extend([
        Sample::new("agent/codex.txt", texts::ansi()),
        Sample::new("artifacts/app/README.all.md", texts::wide()),
        Sample::new("artifacts/app/README.ja.md", "# 読んでください\n\nこのツールはファイルを読み込みます。\n"),
        Sample::new("artifacts/app/README.windows.txt", utf16("Größe: 12 €\r\nОК 🙂\r\n")),
        Sample::new("verifier/reward.txt", "0.85\n"),
        Sample::new("verifier/test-stdout.txt", "sentences: 1400, translated: 1398\n"),
    ]);
    Ok(files)
}

fn rename() -> io::Result<Vec<Sample>> {
    let mut files = RENAME.files(&Value::Null);
    for name in [
        "100%.txt",
        "literal-%3D",
        "a+b",
        "[1]{2}.txt",
        "caf\u{e9}.txt",
        "cafe\u{301}.txt",
        "日本語.txt",
        "папка/файл.txt",
        ".hidden",
        "core#1",
        "..x",
        "two  spaces .txt",
        "~tilde",
        "~1",
        "what?.txt",
        "it's \"quoted\".txt",
        "semi;colon&amp.txt",
    ] {
        files.push(Sample::new(format!("artifacts/{name}"), format!("This file is called {name}\n")));
    }
    files.push(Sample::new("verifier/reward.txt", "1\n"));
    files.push(Sample::new("verifier/test-stdout.txt", "17 of 17 names kept\n"));
    Ok(files)
}

fn deploy() -> io::Result<Vec<Sample>> {
    let step = |name: &str, reward: f64| json!({"step_name": name, "verifier_result": {"rewards": {"reward": reward}}});
    let mut files = DEPLOY.files(&json!([step("build", 1.0), step("deploy", 0.0)]));
    for (name, said, reward, tests) in [
        ("build", "The image builds after the base image is pinned.", "1\n", "test_image_exists PASSED\n"),
        ("deploy", "The service is started; the health check answers 503.", "0\n", "test_health FAILED: 503 != 200\n"),
    ] {
        let file = |path: &str, text: String| Sample::new(format!("steps/{name}/{path}"), text);
        files.extend([
            file("agent/trajectory.json", harbor::trajectory(DEPLOY.agent, &[("user", name), ("agent", said)])),
            file("verifier/reward.txt", reward.into()),
            file("verifier/test-stdout.txt", tests.into()),
            file("artifacts/manifest.json", harbor::manifest(&[("/var/log/app.log", "var/log/app.log", "ok")])),
            file("artifacts/var/log/app.log", format!("09:27:01 {name}: begin\n09:30:44 {name}: end\n")),
        ]);
    }
    Ok(files)
}

fn crack() -> io::Result<Vec<Sample>> {
    let mut files = CRACK.files(&Value::Null);
    let turns = [
        ("user", "Find the password of /app/secrets.7z and write it to /app/password.txt."),
        ("agent", "I extract the hash and start with the short word list."),
        ("environment", "0g 0:00:05:41 3.12% (ETA: 12:14:03) 0g/s 1804p/s 1804c/s 1804C/s"),
    ];
    files.extend([
        Sample::new("agent/trajectory.json", harbor::trajectory(CRACK.agent, &turns)),
        Sample::new(
            "artifacts/manifest.json",
            harbor::manifest(&[("/app/password.txt", "app/password.txt", "failed")]),
        ),
    ]);
    Ok(files)
}

fn picture(name: &str, bytes: ImageResult<Vec<u8>>) -> io::Result<Sample> {
    Ok(Sample::new(name, bytes.map_err(io::Error::other)?))
}

/// A ZIP file of two stored members, dated 1980.
fn bundle() -> zip::result::ZipResult<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, text) in [("bundle/README.txt", "Plots of the run.\n"), ("bundle/metrics.json", "{\"loss\": 0.31}\n")] {
        zip.start_file(name, options)?;
        zip.write_all(text.as_bytes())?;
    }
    Ok(zip.finish()?.into_inner())
}

/// Little-endian UTF-16 with its byte order mark, as Windows tools write it.
fn utf16(text: &str) -> Vec<u8> {
    std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

const RECORDING: &str = r#"{"version": 2, "width": 80, "height": 24, "timestamp": 1795856520}
[0.12, "o", "$ git merge feature/parser\r\n"]
[0.34, "o", "CONFLICT (content): Merge conflict in src/parser.py\r\n"]
[41.8, "o", "$ pytest -q\r\n"]
[43.7, "o", "\u001b[32m22 passed\u001b[0m in 1.84s\r\n"]
"#;

const TESTS_PASSED: &str = "============================= test session starts ==============================
collected 3 items

tests/test_outputs.py ...                                                [100%]

============================== 3 passed in 0.41s ===============================
";

const PARSER: &str = r#"def tokenize(text, *, keep_space=False):
    """Yields the tokens of text."""
    for word in text.split():
        if not word.isprintable():
            raise ValueError(f"not printable: {word!r}")
        yield word
        if keep_space:
            yield " "
"#;
