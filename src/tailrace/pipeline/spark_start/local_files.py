"""Has Hadoop write local files without a second file for the checksum and without a program for the permissions."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

# Hadoop without its native library runs `chmod` for each file that it creates. Spark has the compiler that this needs.
_SOURCE = """
public class LocalFiles extends org.apache.hadoop.fs.RawLocalFileSystem {
  public void setPermission(
      org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission)
      throws java.io.IOException {
    java.nio.file.Files.setAttribute(
        pathToFile(path).toPath(), "unix:mode", Integer.valueOf(permission.toShort()),
        new java.nio.file.LinkOption[0]);
  }
}
"""


def write_plainly(context: SparkContext) -> None:
    """Change how the session's JVM writes local files: a micro-batch creates two in its checkpoint.

    See docs/decisions/0037-permissions-without-a-program.md.
    """
    from py4j.protocol import Py4JError

    jvm: Any = context._jvm
    gateway: Any = context._gateway
    local = jvm.org.apache.hadoop.fs.FileSystem.getLocal(context._jsc.hadoopConfiguration())
    local.setWriteChecksum(False)
    try:
        _replace(jvm, local, gateway.new_array(jvm.java.lang.Object, 0))
    except Py4JError as reason:
        log.info("local files get their permissions by a program, which costs a micro-batch some ms: %s", reason)


def _replace(jvm: Any, local: Any, nothing: Any) -> None:
    """Have a LocalFileSystem, which all of the JVM shares, write by our class."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(_SOURCE)
    (constructor,) = compiler.getClassLoader().loadClass("LocalFiles").getConstructors()
    writing, former = constructor.newInstance(nothing), local.getRaw()
    writing.initialize(former.getUri(), former.getConf())
    inner = jvm.java.lang.Class.forName("org.apache.hadoop.fs.FilterFileSystem").getDeclaredField("fs")
    inner.setAccessible(True)
    inner.set(local, writing)
