# Fit one of R's packages to known.csv and say mean and worth of each row of asked.csv.
#
#   Rscript peers.R FOLDER glmmTMB|mgcv binomial|poisson one|each
#
# The mean is of a rate: of one trial, or a unit of exposure. Its worth is the beta-binomial's
# precision or the negative binomial's shape.

given <- commandArgs(trailingOnly = TRUE)
folder <- given[1]; package <- given[2]; kind <- given[3]; precision <- given[4]
known <- read.csv(file.path(folder, "known.csv"))
asked <- read.csv(file.path(folder, "asked.csv"))
columns <- setdiff(names(known), c("y", "n"))
scale <- mean(known$n)
known$off <- log(known$n / scale)
asked$off <- 0
left <- if (kind == "binomial") "cbind(y, n - y)" else "y"

if (package == "glmmTMB") {
  library(glmmTMB)
  linear <- paste(columns, collapse = " + ")
  offset <- if (kind == "binomial") "" else " + offset(off)"
  found <- glmmTMB(
    as.formula(paste(left, "~", linear, offset)),
    dispformula = if (precision == "one") ~1 else as.formula(paste("~", linear)),
    family = if (kind == "binomial") betabinomial() else nbinom2(),
    data = known,
    control = glmmTMBControl(optCtrl = list(iter.max = 2000, eval.max = 2000))
  )
  # By the coefficients, since predict() may ask for the response.
  design <- cbind(1, as.matrix(asked[, columns, drop = FALSE]))
  fixed <- fixef(found)
  fixed$cond[is.na(fixed$cond)] <- 0
  fixed$disp[is.na(fixed$disp)] <- 0
  link <- as.vector(design %*% fixed$cond)
  log_worth <- if (precision == "one") rep(fixed$disp[1], nrow(asked)) else
    as.vector(design %*% fixed$disp)
  worth <- exp(pmin(pmax(log_worth, -14), 21))
  mean <- if (kind == "binomial") plogis(link) else exp(link) / scale
} else {
  library(mgcv)
  # As many bends as a column has values for; a straight line where it has few.
  term <- function(name) {
    values <- length(unique(known[[name]]))
    if (values < 10) name else sprintf("s(%s, k = %d)", name, min(6, values - 1))
  }
  right <- paste(vapply(columns, term, ""), collapse = " + ")
  offset <- if (kind == "binomial") "" else " + offset(off)"
  found <- bam(
    as.formula(paste(left, "~", right, offset)),
    family = if (kind == "binomial") quasibinomial() else nb(),
    data = known, select = TRUE, discrete = TRUE, method = "fREML"
  )
  mean <- as.vector(predict(found, asked, type = "response"))
  if (kind == "poisson") {
    mean <- mean / scale
    worth <- rep(found$family$getTheta(TRUE), nrow(asked))
  } else {
    fitted <- pmin(pmax(as.vector(fitted(found)), 1e-9), 1 - 1e-9)
    loss <- function(log_worth) {
      a <- fitted * exp(log_worth); b <- (1 - fitted) * exp(log_worth)
      -sum(lbeta(known$y + a, known$n - known$y + b) - lbeta(a, b))
    }
    worth <- rep(exp(optimize(loss, c(-7, 14))$minimum), nrow(asked))
  }
}
write.csv(data.frame(mean = mean, worth = worth), file.path(folder, "said.csv"), row.names = FALSE)
