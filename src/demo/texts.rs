//! Texts of the sample that are too long to stand in its table.

/// A text of about 100 KiB in many scripts: characters of one to four bytes and of double width,
/// no control characters, so that a window of it is the text itself.
pub(super) fn wide() -> String {
    const SENTENCES: [&str; 8] = [
        "The tool reads a file and writes a file.",
        "このツールはファイルを読み込み、別のファイルに書き出します。",
        "该工具读取一个文件，并写入另一个文件。",
        "이 도구는 파일을 읽고 다른 파일에 씁니다.",
        "Инструмент читает один файл и записывает другой.",
        "Το εργαλείο διαβάζει ένα αρχείο και γράφει ένα άλλο.",
        "यह उपकरण एक फ़ाइल पढ़ता है और दूसरी लिखता है।",
        "🙂 → 📄 → 🛠 → 📄 → 🎉  ﬁn, ½, ℵ₀, 𝔘𝔫𝔦𝔠𝔬𝔡𝔢, Ａ　Ｂ",
    ];
    let mut text = String::from("# README\n\n");
    for (number, sentence) in (1..=1400).zip(SENTENCES.iter().cycle()) {
        text.push_str(&format!("{number:>4}. {sentence}\n"));
    }
    text
}

/// What a terminal recorded: colours, a progress line drawn over itself, a bell.
pub(super) fn ansi() -> String {
    let mut text = String::from("\x1b[1m$ make translate\x1b[0m\n");
    for percent in (0..=100).step_by(5) {
        text.push_str(&format!("\r\x1b[K\x1b[32mtranslating\x1b[0m {percent:>3} %"));
    }
    text + "\n\x1b[31mwarning:\x1b[0m 2 sentences were left as they are\x07\n"
}

/// A page that calls itself a picture.
pub(super) const HTML: &str = "<!DOCTYPE html>\n<html>\n<head><title>502 Bad Gateway</title></head>\n<body>\n\
<h1>502 Bad Gateway</h1>\n<p>The chart service did not answer.</p>\n<script>document.title = 'loaded'</script>\n\
</body>\n</html>\n";

/// What ended the trial that failed.
pub(super) const TRACEBACK: &str = r#"Traceback (most recent call last):
  File "/opt/harbor/trial.py", line 412, in _execute_agent
    await asyncio.wait_for(self._agent.run(instruction, environment, context), timeout=limit)
  File "/usr/lib/python3.13/asyncio/tasks.py", line 507, in wait_for
    return await fut
TimeoutError

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/opt/harbor/trial.py", line 518, in run
    await self._execute_agent()
  File "/opt/harbor/trial.py", line 420, in _execute_agent
    raise AgentTimeoutError(f"Agent execution timed out after {limit} seconds")
AgentTimeoutError: Agent execution timed out after 360.0 seconds
"#;
